"""The kernel that executes the pages: figures are SVG with text as paths, in one style."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

c = get_config()  # noqa: F821

c.IPKernelApp.log_level = "ERROR"
# Pages name files from the root of the checkout, as a reader there would.
c.IPKernelApp.exec_lines = [f"import os; os.chdir({str(ROOT)!r}); del os"]
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {
    "figure.figsize": (6.4, 3.8),
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "svg.hashsalt": "symdp",
}
