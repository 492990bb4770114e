"""Who somebody is to this gateway: the pure rules of access.py with what pairing has granted."""

from hermes.adapters.base import Origin
from hermes.gateway.access import AccessRules, Denied, Role, judge
from hermes.gateway.config import Config
from hermes.gateway.node import Node
from hermes.gateway.routing import KeyPolicy, session_key, shared
from hermes.sessions.model import SessionKey


def access_rules(config: Config) -> AccessRules:
    """What the configuration says about who may talk."""
    owners = (owner.partition(":") for owner in config.access.owners)
    return AccessRules(
        owners=frozenset((platform, user) for platform, _, user in owners),
        allowed={name: frozenset(block.allowed_users) for name, block in config.platforms.items()},
        allow_all=config.access.allow_all,
        pair_strangers=config.access.unauthorized_dm == "pair",
    )


class Doorman:
    """Judges origins and makes their keys, by the configuration as it is now."""

    def __init__(self, node: Node, policy: KeyPolicy) -> None:
        self._node = node
        self._policy = policy

    async def judge(self, origin: Origin) -> Role | Denied:
        """What the sender may be, or why nothing. Pairing is asked about those that the configuration leaves open."""
        rules = access_rules(self._node.config())
        verdict = judge(origin, rules=rules, granted=None)
        if verdict is Role.OWNER or origin.user_id is None:
            return verdict
        granted = await self._node.store.roles.role_of(origin.platform, origin.user_id)
        return judge(origin, rules=rules, granted=granted)

    async def role_of(self, origin: Origin) -> Role:
        """The sender's role. Somebody who was let in and has been revoked since is a guest for what began before."""
        verdict = await self.judge(origin)
        return Role.GUEST if isinstance(verdict, Denied) else verdict

    def key(self, origin: Origin) -> SessionKey:
        """Where the message belongs."""
        return session_key(origin, self._policy)

    def is_shared(self, origin: Origin) -> bool:
        """Whether others read the conversation too."""
        return shared(origin, self._policy)
