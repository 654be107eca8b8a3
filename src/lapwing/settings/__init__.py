"""All settings as documented, validated dataclasses."""
