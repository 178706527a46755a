"""The routes of volumes, their attachments and transfers, and their policy rules."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.routing import Route, Rule
from innkeeper.entrypoints.api.volumes import (
    actions,
    attachments,
    documents,
    schemas,
    transfers,
    volumes,
)
from innkeeper.entrypoints.api.volumes.rules import ANYBODY, WRITER

ALL = "/v3/volumes"
DETAIL = "/v3/volumes/detail"
ONE = "/v3/volumes/{volume_id}"
METADATA = f"{ONE}/metadata"
ITEM = f"{METADATA}/{{key}}"
ATTACHMENTS = "/v3/attachments"
ATTACHMENT = "/v3/attachments/{attachment_id}"
TRANSFERS = "/v3/os-volume-transfer"
NEW_TRANSFERS = "/v3/volume-transfers"
NEW_TRANSFERS_SINCE = Version(3, 55)
ATTACHMENTS_SINCE = Version(3, 27)

_GET_ALL = Rule("volume:get_all", ANYBODY, "List volumes of the caller's project.")
_GET = Rule("volume:get", ANYBODY, "Show a volume of the caller's project.")
_CREATE = Rule("volume:create", WRITER, "Create a volume in the caller's project.")
_UPDATE = Rule("volume:update", WRITER, "Update a volume of the caller's project.")
_DELETE = Rule("volume:delete", WRITER, "Delete a volume of the caller's project.")
_GET_METADATA = Rule("volume:get_volume_metadata", ANYBODY, "Show the metadata of a volume.")
_SET_METADATA = Rule("volume:update_volume_metadata", WRITER, "Change the metadata of a volume.")
_DROP_METADATA = Rule("volume:delete_volume_metadata", WRITER, "Remove metadata of a volume.")
_EXPLAIN = Rule(
    "volume:explain", ANYBODY, "Explain why a volume is in its pool, or which pools it could use."
)
_ACT = Rule(
    "volume:action", WRITER, "Carry out actions on volumes. Each action also has a rule of its own."
)
_ATTACH_GET = Rule("volume:attachment_get", ANYBODY, "Show attachments.")
_ATTACH = Rule("volume:attachment_create", WRITER, "Create an attachment.")
_ATTACH_UPDATE = Rule("volume:attachment_update", WRITER, "Give an attachment its connector.")
_ATTACH_COMPLETE = Rule("volume:attachment_complete", WRITER, "Complete an attachment.")
_ATTACH_DELETE = Rule("volume:attachment_delete", WRITER, "Delete an attachment.")
_OFFER_GET = Rule("volume:get_all_transfers", ANYBODY, "Show transfers of the caller's project.")
_OFFER = Rule("volume:create_transfer", WRITER, "Offer a volume to another project.")
_ACCEPT = Rule("volume:accept_transfer", WRITER, "Take over a volume of another project.")
_WITHDRAW = Rule("volume:delete_transfer", WRITER, "Withdraw the offer of a volume.")


def _transfers(path: str, since: Version | None) -> tuple[Route, ...]:
    one = f"{path}/{{transfer_id}}"
    create, take = schemas.CREATE_TRANSFER, schemas.ACCEPT_TRANSFER
    return (
        Route("GET", path, transfers.index, _OFFER_GET, query=schemas.PAGE, since=since),
        Route("POST", path, transfers.create, _OFFER, body=create, since=since, success=(202,)),
        Route(
            "GET", f"{path}/detail", transfers.detail, _OFFER_GET, query=schemas.PAGE, since=since
        ),
        Route("GET", one, transfers.show, _OFFER_GET, since=since),
        Route("DELETE", one, transfers.delete, _WITHDRAW, since=since, success=(202,)),
        Route(
            "POST",
            f"{one}/accept",
            transfers.accept,
            _ACCEPT,
            body=take,
            since=since,
            success=(202,),
        ),
    )


VOLUME_ROUTES = (
    Route("GET", "", documents.versions, None, success=(300,)),
    # The trailing slash makes the route match paths with and without one.
    Route("GET", "/v3/", documents.version, None),
    Route("GET", "/v3/extensions", documents.extensions, _GET_ALL),
    Route("GET", ALL, volumes.index, _GET_ALL, query=schemas.LIST),
    Route("POST", ALL, volumes.create, _CREATE, body=schemas.CREATE, success=(202,)),
    Route("GET", DETAIL, volumes.detail, _GET_ALL, query=schemas.LIST),
    Route(
        "GET", f"{ALL}/summary", volumes.summary, _GET_ALL, query=schemas.LIST, since=Version(3, 12)
    ),
    Route(
        "POST", f"{ALL}/os-explain", volumes.explain, _EXPLAIN, body=schemas.EXPLAIN, is_read=True
    ),
    Route("GET", ONE, volumes.show, _GET),
    Route("PUT", ONE, volumes.update, _UPDATE, body=schemas.UPDATE),
    Route("DELETE", ONE, volumes.delete, _DELETE, query=schemas.DELETE, success=(202,)),
    Route("GET", f"{ONE}/os-explain", volumes.explained, _EXPLAIN),
    # The handler also checks the rule of the requested action.
    Route(
        "POST",
        f"{ONE}/action",
        actions.act,
        _ACT,
        body=schemas.VOLUME_ACTION,
        success=(200, 202),
        rule_of_body=actions.rule_of,
    ),
    Route("GET", f"{ONE}/encryption", volumes.encryption, _GET),
    Route("GET", METADATA, volumes.metadata, _GET_METADATA),
    Route("POST", METADATA, volumes.add_metadata, _SET_METADATA, body=schemas.SET_METADATA),
    Route("PUT", METADATA, volumes.set_metadata, _SET_METADATA, body=schemas.SET_METADATA),
    Route("GET", ITEM, volumes.metadata_item, _GET_METADATA),
    Route("PUT", ITEM, volumes.set_metadata_item, _SET_METADATA, body=schemas.SET_ITEM),
    Route("DELETE", ITEM, volumes.remove_metadata_item, _DROP_METADATA),
    *_transfers(TRANSFERS, None),
    *_transfers(NEW_TRANSFERS, NEW_TRANSFERS_SINCE),
)


def _attachment(method: str, path: str, handler: object, rule: Rule, **more: object) -> Route:
    since = more.pop("since", ATTACHMENTS_SINCE)
    return Route(method, path, handler, rule, since=since, **more)  # type: ignore[arg-type]


ATTACHMENT_ROUTES = (
    _attachment("GET", ATTACHMENTS, attachments.index, _ATTACH_GET, query=schemas.PAGE),
    _attachment("POST", ATTACHMENTS, attachments.create, _ATTACH, body=schemas.CREATE_ATTACHMENT),
    _attachment(
        "GET", f"{ATTACHMENTS}/detail", attachments.detail, _ATTACH_GET, query=schemas.PAGE
    ),
    _attachment("GET", ATTACHMENT, attachments.show, _ATTACH_GET),
    _attachment(
        "PUT", ATTACHMENT, attachments.update, _ATTACH_UPDATE, body=schemas.UPDATE_ATTACHMENT
    ),
    _attachment("DELETE", ATTACHMENT, attachments.delete, _ATTACH_DELETE),
    _attachment(
        "POST",
        f"{ATTACHMENT}/action",
        attachments.act,
        _ATTACH_COMPLETE,
        body=schemas.ACTION,
        success=(204,),
        since=Version(3, 44),
    ),
)
