"""Plug-ins for other libraries, each imported only when asked for.

In come the steps that a library counted, out goes the upper end of symdp's interval, rounded up,
as `upper.py` does for all of them; read it first.

- `symdp.adapters.opacus`: an accountant for `opacus.PrivacyEngine(accountant="symdp")`;
- `symdp.adapters.dp_accounting`: `DpEvent` in and out, and a `PrivacyAccountant`;
- `symdp.adapters.flower`: an accountant for Flower's strategies;
- `symdp.adapters.opendp`: privacy profiles and measurements for OpenDP.
"""
