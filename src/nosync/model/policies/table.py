"""The policies that there are, by the names that journals have."""

from nosync.model.errors import Invalid
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.policy import Policy

POLICIES: dict[str, Policy] = {policy.name: policy for policy in (LOG_STRUCTURED,)}


def policy_named(name: str) -> Policy:
    """The policy that a journal declares."""
    if name not in POLICIES:
        raise Invalid(
            f'the home is protected by a policy "{name}" that is not known here',
            hint=f"Use the version of nosync that ran the flow last. This one knows: {', '.join(POLICIES)}.",
        )
    return POLICIES[name]
