# What `import symdp` offers, each name with its home: read by type checkers and by `__init__.py`.

from symdp import individual as individual
from symdp import mechanisms as mechanisms
from symdp.derive.kinds import derive as derive
from symdp.derive.printed import Derivation as Derivation
from symdp.errors import AccuracyError as AccuracyError
from symdp.errors import InputError as InputError
from symdp.errors import SymdpError as SymdpError
from symdp.model.mechanism import Mechanism as Mechanism
from symdp.model.specification import load as load
from symdp.questions.audit import audit as audit
from symdp.questions.calibrate import Calibration as Calibration
from symdp.questions.calibrate import calibrate as calibrate
from symdp.questions.composition import Composition as Composition
from symdp.questions.composition import compose as compose
from symdp.questions.guarantee import Curve as Curve
from symdp.questions.guarantee import Guarantee as Guarantee
from symdp.questions.ledger import Ledger as Ledger
from symdp.questions.noise import compare as compare
from symdp.questions.parallel import Parallel as Parallel
from symdp.questions.parallel import load_composition as load_composition
from symdp.questions.sweep import Sweep as Sweep
from symdp.questions.sweep import sensitivities as sensitivities
from symdp.questions.sweep import sweep as sweep
from symdp.questions.training import training as training
from symdp.version import __version__ as __version__
