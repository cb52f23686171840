"""Certificates for test servers, issued by private CAs."""

import ssl
import subprocess


def issue(folder, name):
    """Create a CA and a certificate for a host or address; return its context and the CA's file."""
    files = {
        each: folder / f"{name}-{each}" for each in ("ca", "ca-key", "key", "csr", "crt", "ext")
    }
    kind = "IP" if name[0].isdigit() else "DNS"
    files["ext"].write_text(f"subjectAltName={kind}:{name}")

    def openssl(*options):
        subprocess.run(("openssl", *options), check=True, capture_output=True)

    new_key = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new_key, "-x509", "-subj", "/CN=CA", "-days", "2",
            "-keyout", files["ca-key"], "-out", files["ca"])  # fmt: skip
    openssl(*new_key, "-subj", f"/CN={name}", "-keyout", files["key"], "-out", files["csr"])
    openssl("x509", "-req", "-in", files["csr"], "-CA", files["ca"], "-CAkey", files["ca-key"],
            "-days", "2", "-extfile", files["ext"], "-out", files["crt"])  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["crt"], files["key"])
    return context, str(files["ca"])
