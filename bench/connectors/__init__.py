"""Connectors measured: Kafka to Kafka in turn with Structured Streaming on one broker, and each connector beside a plain client."""
