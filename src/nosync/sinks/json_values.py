"""Values of Arrow as JSON has them: numbers that JSON cannot hold exactly, times and bytes are texts."""

import base64
import math
from typing import Any

import pyarrow as pa


def plain(value: Any, type: pa.DataType) -> Any:
    """A map is an object where its keys are texts, else a list of pairs."""
    if value is None:
        return None
    if pa.types.is_struct(type):
        return {field.name: plain(value[field.name], field.type) for field in type}
    if pa.types.is_map(type):
        pairs = [(plain(key, type.key_type), plain(item, type.item_type)) for key, item in value]
        return dict(pairs) if pa.types.is_string(type.key_type) else [list(pair) for pair in pairs]
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return [plain(item, type.value_type) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if pa.types.is_timestamp(type):
        return value.isoformat().replace("+00:00", "Z")
    return value if isinstance(value, bool | int | float | str) else str(value)
