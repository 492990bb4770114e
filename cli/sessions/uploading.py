"""`--upload`: traces to a data set of the person's own on the Hugging Face Hub."""

from collections.abc import Mapping

from hermes.cli.sessions.formats import Job
from hermes.errors import UserError
from hermes.redact import Redactor
from hermes.sessions.exports import trace
from hermes.sessions.exports.files import plain

DATA_SET = "hermes-traces"
TOKENS = ("HF_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")


def upload(job: Job, environ: Mapping[str, str], *, public: bool) -> None:
    """Put each chosen conversation at `sessions/<id>.jsonl`; the data set is made, private unless `public`.

    Raises UserError without a token, without the library, and when the Hub refuses.
    """
    token = next((environ[name] for name in TOKENS if environ.get(name)), None)
    if token is None:
        raise UserError("Uploading needs a token that may write: set HF_TOKEN.")
    try:
        from httpx2 import TransportError  # what that library is built on
        from huggingface_hub import CommitOperationAdd, HfApi
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise UserError("Uploading needs a library: pip install 'hermes-gateway[traces]'") from error
    files = {f"sessions/{plain(one.session.id)}.jsonl": "".join(trace.trace(one)) for one in job.documents()}
    api = HfApi(token=token, endpoint=environ.get("HF_ENDPOINT"))
    try:
        name = f"{api.whoami()['name']}/{DATA_SET}"
        api.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
        if not public and not api.dataset_info(name).private:  # it was there before, as its owner made it
            raise UserError(f"The data set {name} is public. Say --public to add to it, or make it private first.")
        done = api.create_commit(
            repo_id=name,
            repo_type="dataset",
            operations=[CommitOperationAdd(path, text.encode()) for path, text in files.items()],
            commit_message=f"Add {len(files)} trace{'' if len(files) == 1 else 's'}",
        )
    except (HfHubHTTPError, TransportError, OSError, ValueError) as error:
        raise UserError(
            f"The Hub did not take the traces: {Redactor([token]).text(str(error))}. Nothing here was changed."
        ) from error
    print(f"Uploaded {len(files)} to {'public' if public else 'private'} data set {name}: {done.commit_url}")
