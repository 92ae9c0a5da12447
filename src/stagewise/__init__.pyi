from typing import Any

from stagewise.models.kernel import RBF as RBF
from stagewise.models.kernel import LinearKernel as LinearKernel
from stagewise.models.kernel import Matern as Matern
from stagewise.policies.agent.agent import Agent as Agent
from stagewise.policies.agent.replica import Replica as Replica
from stagewise.policies.agent.snapshot import Snapshot as Snapshot
from stagewise.policies.always_safe import AlwaysSafe as AlwaysSafe
from stagewise.policies.arms_caps import ArmsCAPS as ArmsCAPS
from stagewise.policies.caps import CAPS as CAPS
from stagewise.policies.context_caps import ContextCAPS as ContextCAPS
from stagewise.policies.doslb import DOSLB as DOSLB
from stagewise.policies.kernel_oplb import KernelOPLB as KernelOPLB
from stagewise.policies.lclucb import LCLUCB as LCLUCB
from stagewise.policies.lclucb import ROFUL as ROFUL
from stagewise.policies.linucb import LinUCB as LinUCB
from stagewise.policies.opb import OPB as OPB
from stagewise.policies.oplb import OPLB as OPLB
from stagewise.policies.opnlb import OPNLB as OPNLB
from stagewise.policies.policy import Policy as Policy
from stagewise.policies.policy import State as State
from stagewise.policies.problem import Problem as Problem
from stagewise.policies.safe_lts import SafeLTS as SafeLTS
from stagewise.policies.ucb import UCB as UCB
from stagewise.problem.actions import Arms as Arms
from stagewise.problem.actions import Finite as Finite
from stagewise.problem.actions import Rays as Rays
from stagewise.problem.context import Context as Context
from stagewise.problem.declared import Limit as Limit
from stagewise.problem.declared import Reward as Reward
from stagewise.problem.ellipsoid import Ball as Ball
from stagewise.problem.ellipsoid import Ellipsoid as Ellipsoid
from stagewise.problem.errors import InvalidActions as InvalidActions
from stagewise.problem.errors import InvalidFile as InvalidFile
from stagewise.problem.errors import InvalidOutcome as InvalidOutcome
from stagewise.problem.errors import InvalidProblem as InvalidProblem
from stagewise.problem.errors import StagewiseError as StagewiseError
from stagewise.problem.functions import FunctionClass as FunctionClass
from stagewise.problem.polytope import Box as Box
from stagewise.problem.polytope import Polytope as Polytope
from stagewise.problem.safe_action import SafeAction as SafeAction
from stagewise.problem.thresholds import AtLeast as AtLeast
from stagewise.problem.thresholds import RelativeToSafe as RelativeToSafe
from stagewise.problem.window import Window as Window
from stagewise.records.decision import Decision as Decision
from stagewise.records.draw import Draw as Draw
from stagewise.records.outcome import Outcome as Outcome
from stagewise.reports.certificate import Certificate as Certificate
from stagewise.reports.result import Result as Result
from stagewise.reports.traffic import draw_report as draw_report
from stagewise.simulation.certify import certify as certify
from stagewise.simulation.simulate import simulate as simulate
from stagewise.simulation.sweep import sweep as sweep
from stagewise.simulation.verify import verify as verify
from stagewise.worlds.arms import ArmsWorld as ArmsWorld
from stagewise.worlds.context import ContextWorld as ContextWorld
from stagewise.worlds.family import ArmsFamily as ArmsFamily
from stagewise.worlds.family import SphereFamily as SphereFamily
from stagewise.worlds.fresh import RandomFinite as RandomFinite
from stagewise.worlds.fresh import RandomRays as RandomRays
from stagewise.worlds.linear import LinearWorld as LinearWorld
from stagewise.worlds.table import TableWorld as TableWorld
from stagewise.worlds.world import World as World

__version__: str

def _exported(*rooms: str) -> dict[str, Any]: ...
