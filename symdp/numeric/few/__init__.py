"""δ of few steps from its definition, one integral over outcomes a step."""
