"""The learner in a live system: one decision at a time, feedback when it arrives."""

from jaxbandit.agent.agent import Agent
from jaxbandit.agent.tickets import Ticket, TicketError

__all__ = ["Agent", "Ticket", "TicketError"]
