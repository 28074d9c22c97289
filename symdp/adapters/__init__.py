"""Plug-ins for other libraries, each imported only when asked for.

- `symdp.adapters.opacus`: an accountant for `opacus.PrivacyEngine(accountant="symdp")`;
- `symdp.adapters.dp_accounting`: `DpEvent` in and out, and a `PrivacyAccountant`;
- `symdp.adapters.flower`: an accountant for Flower's strategies.

What they return is the upper end of symdp's interval, rounded up.
"""
