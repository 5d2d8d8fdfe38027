"""The public names of marginbench.solvers, for type checkers and for the lazy import."""

from .approximate.low_rank import LowRankSVM as LowRankSVM, Nystrom as Nystrom
from .approximate.random_features import (
    RandomFourierFeatures as RandomFourierFeatures,
    RandomFourierMap as RandomFourierMap,
)
from .budget import BSCA as BSCA, BSGD as BSGD
from .bundle.bmrm import BundleResult as BundleResult, BundleTrace as BundleTrace
from .bundle.estimators import (
    OCAS as OCAS,
    BundleClassifier as BundleClassifier,
    BundleRegressor as BundleRegressor,
    minimize_risk as minimize_risk,
)
from .bundle.losses import (
    F1 as F1,
    EpsilonInsensitive as EpsilonInsensitive,
    Hinge as Hinge,
    LeastSquares as LeastSquares,
    Logistic as Logistic,
    Loss as Loss,
    Multiclass as Multiclass,
    Novelty as Novelty,
    PointwiseLoss as PointwiseLoss,
    PrecisionAtK as PrecisionAtK,
    Quantile as Quantile,
    ROCArea as ROCArea,
    SquaredHinge as SquaredHinge,
)
from .bundle.regularizers import (
    L1 as L1,
    L2 as L2,
    Entropy as Entropy,
    Legendre as Legendre,
    Regularizer as Regularizer,
    SimplexEntropy as SimplexEntropy,
)
from .cuts.cutting_plane import CuttingPlane as CuttingPlane
from .cuts.structure import (
    LinearChain as LinearChain,
    MultiClass as MultiClass,
    StructuredProblem as StructuredProblem,
    TwoClasses as TwoClasses,
    Violations as Violations,
)
from .cuts.structured import (
    StructuredExpansion as StructuredExpansion,
    StructuredSVM as StructuredSVM,
)
from .feasibility.certificates import Verdict as Verdict, check_certificate as check_certificate
from .feasibility.cones import (
    Orthant as Orthant,
    PositiveSemidefinite as PositiveSemidefinite,
    SecondOrder as SecondOrder,
)
from .feasibility.mirror_prox import MPCFP as MPCFP, MPKFP as MPKFP, MPLFP as MPLFP
from .feasibility.problem import FeasibilityProblem as FeasibilityProblem
from .feasibility.result import FeasibilityResult as FeasibilityResult
from .feasibility.rivals import (
    ISNKPVN as ISNKPVN,
    ISPVN as ISPVN,
    KPCT as KPCT,
    KVN as KVN,
    PCT as PCT,
    SNKP as SNKP,
    SPCT as SPCT,
    SPVN as SPVN,
    VN as VN,
)
from .interface.base import Solver as Solver, WeightedSolver as WeightedSolver
from .interface.declaration import hyperparameters as hyperparameters
from .interface.monitor import Monitor as Monitor, Progress as Progress
from .interface.one_vs_rest import OneVsRest as OneVsRest
from .interface.parameters import (
    CachedKernelParameters as CachedKernelParameters,
    KernelParameters as KernelParameters,
    SeedParameters as SeedParameters,
    SoftMarginParameters as SoftMarginParameters,
    SolverParameters as SolverParameters,
    WarmStartParameters as WarmStartParameters,
)
from .interface.problem import Problem as Problem, Solution as Solution
from .interface.saving import load_solver as load_solver
from .kernels import (
    RBF as RBF,
    CallableKernel as CallableKernel,
    Kernel as Kernel,
    Linear as Linear,
    Polynomial as Polynomial,
    Precomputed as Precomputed,
)
from .kernels.laplacian import Laplacian as Laplacian
from .kernels.oracle import KernelOracle as KernelOracle
from .linear.pegasos import LinearPegasos as LinearPegasos
from .linear.sdca import LinearSDCA as LinearSDCA
from .linear.simba import SIMBA as SIMBA
from .models import (
    BudgetExpansion as BudgetExpansion,
    KernelExpansion as KernelExpansion,
    LinearModel as LinearModel,
    Model as Model,
    OneVsRestModel as OneVsRestModel,
)
from .models.fourier import FourierExpansion as FourierExpansion
from .models.voting import VotedExpansion as VotedExpansion
from .numeric.counters import Counters as Counters, FeasibilityCounters as FeasibilityCounters
from .peers.exchange import (
    read_libsvm as read_libsvm,
    to_svc as to_svc,
    write_libsvm as write_libsvm,
)
from .peers.liblinear import (
    LIBLINEAR as LIBLINEAR,
    LIBLINEAROfficial as LIBLINEAROfficial,
)
from .peers.libsvm import (
    LIBSVM as LIBSVM,
    LIBSVMSubsample as LIBSVMSubsample,
    OneDAL as OneDAL,
)
from .peers.sklearn_sgd import SklearnSGD as SklearnSGD
from .registration import (
    register as register,
    register_kernel as register_kernel,
    registry as registry,
)
from .sbp.sbp import SBP as SBP
from .smo.smo import SMO as SMO
from .squared.eigenpro import EigenPro as EigenPro
from .squared.falkon import Falkon as Falkon
from .stochastic.batch_perceptron import BatchPerceptron as BatchPerceptron
from .stochastic.pegasos import Pegasos as Pegasos
from .stochastic.perceptron import Perceptron as Perceptron
from .stochastic.sdca import SDCA as SDCA
from .stochastic.sgd import SGD as SGD
