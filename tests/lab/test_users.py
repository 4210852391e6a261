"""A fresh site's declared users: they log in, submit, and their jobs run on home and on rented nodes with their ids,
groups and homes, and nobody has made an account by hand. Real useradd, sshd, PAM, Slurm, slapd and sssd.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironburst import document
from ironburst.baking.first_contact import host_keys
from ironburst.config import load
from lab import names
from lab.demo.inside import Inside
from lab.hosts import rootfs, spec
from lab.hosts.host import SSH_OPTIONS
from lab.system import run, wait_for
from tests import pki, sites
from tests.lab.test_rented_node import LAUNCH, SECRET, Lab
from tests.playbooks import sample
from tests.sites import converge

pytestmark = [pytest.mark.lab, pytest.mark.slow]
HOSTS = ("head", "dgx01", "login01")
HEAD, NODE, LOGIN = "10.78.0.10", "10.78.0.11", sites.LOGIN["login01"]
BAKER, BAKER_ADDRESS, FOLDER = "i-0000000000000ba0e", "10.90.9.3", "users-image"
DIRECTORY = "ldap.example.org"
BASE = "dc=example,dc=org"
PASSWORD = "only-sssd-knows"


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-users-{os.getpid()}", *HOSTS, hall=names.ADDRESSES | sites.LOGIN) as site:
        site.spawn([sys.executable, "-m", "lab.aws", "--prefix", site.prefix, "--root", str(site.box.root)], "aws")
        yield site


@pytest.fixture(scope="module")
def inside(site):
    return Inside(site)


@pytest.fixture(scope="module")
def key(inside):
    """anna's own key pair."""
    path = inside.site.dir / "run" / "anna"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "anna", "-f", str(path)])
    return path


def declared(key):
    stack = load.read_value(sample.REPOSITORY / "stacks/Pulumi.lab.yaml")
    sites.login_node(stack)
    return {
        "halls": stack["halls"],
        "names": "hosts",
        "users": {
            "people": [
                {"name": "anna", "uid": 5001, "group": "physics", "groups": ["gpu"], "keys": [f"{key}.pub"]},
                {"name": "ben", "uid": 5002},
                {"name": "chief", "uid": 5003, "groups": ["admins"], "keys": [f"{key}.pub"]},
            ],
            "groups": {"physics": 5000, "gpu": 5100, "admins": 5200},
            "homes": "/shared/home",
            "accounts": [{"name": "physics", "users": ["anna"], "qos": ["normal", "urgent"]}],
            "qos": [{"name": "urgent", "priority": 100, "max_run": "1h", "max_gpus_per_user": 2}],
            "node_login": {"admins": ["admins"]},
        },
    }


def publish(inside, declare):
    for person in declare["users"].get("people", []):
        person["keys"] = [Path(path).read_text().strip() for path in person.get("keys", [])]
    built = sample.lab_document(munge_key=sites.munge_key(inside.site), names=HOSTS, declare=declare)
    document.publish(built, inside.document)


@pytest.fixture(scope="module")
def converged(inside, key):
    publish(inside, declared(key))
    return converge(inside)


def login(site, key, user, address, *command):
    client = [*site.box.net_prefix(), "ssh", "-i", str(key), *SSH_OPTIONS, f"{user}@{address}", *command]
    return subprocess.run(client, capture_output=True, text=True, timeout=60)


def job(site, user, *options):
    """What a job of one user says of itself on dgx01, the one node; sbatch as the user, who has logged in at the
    head. Its home may be that of the node alone.
    """
    script = "id -u; id -un; id -g; id -G; echo $HOME; stat -c %u:%a $HOME; pwd; hostname -s; touch $HOME/was-here"
    line = f"cd ~ && sbatch --parsable --wait --output=said {' '.join(options)} --wrap '{script}'"
    done = site.ssh("head", ["runuser", "-l", user, "-c", line], check=False, timeout=180)
    assert done.returncode == 0, f"{done.stdout} {done.stderr} {site.ssh('head', 'squeue; sinfo -N').stdout}"
    return site.ssh("dgx01", ["runuser", "-l", user, "-c", "cat said"]).stdout.split("\n")


def test_a_fresh_site_has_its_users_and_the_second_run_changes_nothing(inside, site, converged):
    assert {name: host["state"] for name, host in converged["hosts"].items()} == dict.fromkeys(HOSTS, "converged")
    again = converge(inside, "--always")
    assert {name: host["changed"] for name, host in again["hosts"].items()} == dict.fromkeys(HOSTS, 0)
    for host in HOSTS:
        assert (
            site.ssh(host, "id anna").stdout.strip()
            == "uid=5001(anna) gid=5000(physics) groups=5000(physics),5100(gpu)"
        )
        found = site.ssh(host, "getent ahostsv4 head dgx01 | grep STREAM; cat /etc/hosts").stdout
        assert HEAD in found and "# BEGIN ironburst: hosts of the site" in found


def test_a_declared_user_submits_from_the_head_to_a_home_node(site, key, converged):
    assert login(site, key, "anna", HEAD, "id -un").stdout.strip() == "anna"
    said = job(site, "anna", "--qos=urgent")
    home = "/shared/home/anna"
    assert said[:8] == ["5001", "anna", "5000", "5000 5100", home, "5001:700", home, "dgx01"]
    assert job(site, "ben")[:2] == ["5002", "ben"]  # whom no account names: the default one
    shown = site.ssh(
        "head", "sacctmgr -nP show user anna,ben withassoc format=User,DefaultAccount,QOS,DefaultQOS"
    ).stdout
    assert set(shown.split()) == {"anna|physics|normal,urgent|normal", "ben|users|normal|"}


def test_who_has_no_job_does_not_log_in_at_a_gpu_node(site, key, converged):
    refused = login(site, key, "anna", NODE, "true")
    said = site.ssh("dgx01", "journalctl --no-pager --output=cat --identifier=sshd-session --lines=40").stdout
    assert refused.returncode == 255 and "Access denied for user anna by PAM account configuration" in said
    number = site.ssh("head", ["runuser", "-l", "anna", "-c", "sbatch --parsable --wrap 'sleep 300'"]).stdout.strip()
    wait_for(lambda: "R" in site.ssh("head", f"squeue -h -j {number} -o %t").stdout, 60, "the job's start", pause=0.5)
    admitted = login(site, key, "anna", NODE, "id -un")
    assert admitted.stdout.strip() == "anna", admitted.stderr
    site.ssh("head", f"scancel {number}")

    def out():
        return login(site, key, "anna", NODE, "true").returncode == 255

    wait_for(out, 60, "the login to be closed again", pause=0.5)
    assert login(site, key, "chief", NODE, "id -un").stdout.strip() == "chief"
    assert site.ssh("dgx01", "id -un").stdout.strip() == "root"  # who runs Ansible is never locked out


def test_a_declared_user_logs_in_at_the_login_node_and_submits_there(site, key, converged):
    assert login(site, key, "anna", LOGIN, "id -un").stdout.strip() == "anna", "node_login is of GPU nodes"
    submit = "cd ~ && sbatch --parsable --wait --output=from-login --wrap 'hostname -s; id -un' && cat from-login"
    done = login(site, key, "anna", LOGIN, submit)
    assert done.stdout.split()[1:] == ["dgx01", "anna"], done.stderr
    # srun: the node connects back to the login node
    assert login(site, key, "anna", LOGIN, "srun hostname -s").stdout.strip() == "dgx01"
    seen = site.ssh("login01", "sinfo -N; command -v slurmd nvidia-smi; ls /etc/slurm", check=False).stdout
    assert "login01" not in seen and "slurmd" not in seen and "slurm.conf" not in seen
    assert "nvidia" not in site.ssh("login01", "dpkg-query -W -f '${Package}\\n'").stdout


def test_the_login_node_is_told_of_changed_settings(site, converged):
    def there():
        return "a mark of the test" in site.ssh("login01", "cat /run/slurm/conf/slurm.conf").stdout

    site.ssh("head", "echo '# a mark of the test' >> /etc/slurm/slurm.conf && scontrol reconfigure")
    assert wait_for(there, 30, "the new settings", pause=0.5)
    site.ssh("head", "sed -i '/a mark of the test/d' /etc/slurm/slurm.conf && scontrol reconfigure")
    assert wait_for(lambda: not there(), 30, "the former settings", pause=0.5)


@pytest.fixture(scope="module")
def rented(inside, site, converged):
    """The id of an instance that joined as p5-1, of an image that playbooks/image.yml baked."""
    site.start_host(spec.cloud(BAKER, BAKER_ADDRESS, "p5.48xlarge"))
    site.wait([BAKER])
    public = rootfs.ssh_key(site.box.root).with_suffix(".pub").read_text()
    site.ssh(BAKER, "install -d -m 700 -o admin -g admin ~admin/.ssh")
    site.ssh(BAKER, "cat > ~admin/.ssh/authorized_keys; chown admin: ~admin/.ssh/authorized_keys", stdin=public)
    known = site.dir / "run" / "known_hosts"
    known.write_text("".join(f"{BAKER_ADDRESS} {line}\n" for line in host_keys(site.host(BAKER).console())))
    given = {"pool": "p5", "address": BAKER_ADDRESS, "user": "admin", "known_hosts": str(known)}
    options = [word for name, value in given.items() for word in ("-e", f"image_{name}={value}")]
    inside.run(["ansible-playbook", "-i", "inventory/lab", "playbooks/image.yml", *options], log="image")
    site.bake_image(BAKER, FOLDER)
    site.destroy_host(BAKER)
    lab = Lab(site)
    wait_for(lab.ready, 30, "the cloud")
    lab.image = lab.control("POST", "/lab/images", f'{{"name": "node", "folder": "{FOLDER}"}}')["image_id"]
    lab.subnet = lab.inside("-c", LAUNCH, "prepare", SECRET, "x" * 64)
    site.ssh("head", "touch /var/spool/ironburst/leases/p5-1")
    instance = lab.launch("p5-1", dead_man_s=100_000)

    def joined():
        return "NodeAddr=10.90" in site.ssh("head", "scontrol show node p5-1").stdout

    wait_for(joined, 180, "the rented node to join", pause=0.5)
    site.ssh("head", "scontrol update nodename=p5-1 state=resume")
    return instance


def test_a_rented_node_is_found_by_its_name_on_the_head_and_on_the_login_node(site, rented):
    address = site.host(rented).spec.address
    for host in ("head", "login01"):
        look = f"getent ahostsv4 p5-1 | grep -q '^{address} '"
        assert wait_for(
            lambda host=host, look=look: site.ssh(host, look, check=False).returncode == 0, 15, f"p5-1 on {host}"
        )


def test_the_same_user_submits_from_the_head_to_a_rented_node(site, rented):
    number = site.ssh("head", ["runuser", "-l", "anna", "-c", SUBMIT]).stdout.strip()
    site.ssh("head", f"runuser -u ironburst -- scontrol update jobid={number} partition=burst-p5 excnodelist=")
    site.ssh("head", f"scontrol release {number}")

    def over():
        return "JobState=COMPLETED" in site.ssh("head", f"scontrol show job {number}").stdout

    wait_for(over, 120, "the job's end", pause=0.5)
    said = site.ssh("head", "cat /shared/home/anna/rented").stdout.split("\n")
    home = "/shared/home/anna"
    assert said[:7] == ["5001", "anna", "5000", "5000 5100", "physics gpu", home, home]
    assert "burst-p5 p5-1" in site.ssh("head", f"sacct -nX -j {number} -o Partition%20,NodeList%20").stdout.replace(
        "  ", ""
    ).replace("5p5", "5 p5")
    kept = "grep ^anna: /etc/shadow | cut -d: -f2; ls -A /home /etc/ssh/authorized_keys.d 2>/dev/null"
    seen = site.ssh(rented, kept, check=False).stdout
    assert seen.startswith("!") and "anna" not in seen, "no password, no home, no key"


SUBMIT = (
    "cd ~ && sbatch --parsable --hold --time=5 --output=rented "
    "--wrap 'id -u; id -un; id -g; id -G; id -Gn; echo $HOME; pwd'"
)


LDIF = f"""dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups

dn: cn=lasers,ou=groups,{BASE}
objectClass: posixGroup
cn: lasers
gidNumber: 6000

dn: cn=night,ou=groups,{BASE}
objectClass: posixGroup
cn: night
gidNumber: 6001
memberUid: carla

dn: uid=carla,ou=people,{BASE}
objectClass: inetOrgPerson
objectClass: posixAccount
cn: Carla
sn: Carla
uid: carla
uidNumber: 6100
gidNumber: 6000
homeDirectory: /nowhere/carla

dn: cn=sssd,{BASE}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: sssd
userPassword: {PASSWORD}
"""
TLS = """dn: cn=config
changetype: modify
replace: olcTLSCACertificateFile
olcTLSCACertificateFile: /etc/ldap/ca.pem
-
replace: olcTLSCertificateFile
olcTLSCertificateFile: /etc/ldap/server.pem
-
replace: olcTLSCertificateKeyFile
olcTLSCertificateKeyFile: /etc/ldap/server.key

dn: olcDatabase={1}mdb,cn=config
changetype: modify
replace: olcAccess
olcAccess: {0}to attrs=userPassword by anonymous auth by * none
olcAccess: {1}to * by dn.exact="cn=sssd,dc=example,dc=org" read by * none
"""


@pytest.fixture(scope="module")
def directory(site, converged):
    """A real slapd on the head, read by its own account over TLS alone; the PEM of its authority."""
    ca = pki.issue("the site's authority", ca=True)
    server = pki.issue(DIRECTORY, ca)
    domain = "slapd slapd/domain string example.org\nslapd shared/organization string lab\n"
    for kind in ("password1", "password2"):
        domain += f"slapd slapd/{kind} password root-of-ldap\n"
    site.ssh("head", "debconf-set-selections", stdin=domain)
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slapd ldap-utils"
    site.ssh("head", install, timeout=300)
    for name, text in (("ca.pem", ca.pem), ("server.pem", server.pem), ("server.key", server.key_pem)):
        site.ssh("head", f"cat > /etc/ldap/{name}; chown openldap /etc/ldap/{name}", stdin=text)
    site.ssh("head", "chmod 400 /etc/ldap/server.key")
    site.ssh("head", f"ldapadd -x -H ldap://127.0.0.1 -D cn=admin,{BASE} -w root-of-ldap", stdin=LDIF)
    site.ssh("head", "ldapmodify -Q -Y EXTERNAL -H ldapi:///", stdin=TLS)
    services = 'SLAPD_SERVICES="ldap:/// ldapi:/// ldaps:///"'
    site.ssh("head", f"sed -i 's#^SLAPD_SERVICES=.*#{services}#' /etc/default/slapd; systemctl restart slapd")
    for host in HOSTS:  # the site's DNS
        site.ssh(host, f"echo '{HEAD} {DIRECTORY}' >> /etc/hosts")
    return ca.pem


@pytest.fixture(scope="module")
def of_the_directory(inside, key, directory, monkeypatch_module):
    inside.env["LDAP_PASSWORD"] = PASSWORD
    declare = declared(key)
    declare["users"] |= {
        "people": [],
        "groups": {},
        "directory": {
            "uri": f"ldaps://{DIRECTORY}",
            "base": BASE,
            "ca": directory,
            "bind_dn": f"cn=sssd,{BASE}",
            "bind_password": "env:LDAP_PASSWORD",
        },
        "accounts": [{"name": "lasers", "users": ["carla"]}],
        "homes": "/home",
    }
    publish(inside, declare)
    return converge(inside)


@pytest.fixture(scope="module")
def monkeypatch_module(inside):
    yield
    inside.env.pop("LDAP_PASSWORD", None)


def test_users_of_a_directory_submit_too_and_the_second_run_changes_nothing(inside, site, of_the_directory):
    again = converge(inside, "--always")
    assert {name: host["changed"] for name, host in again["hosts"].items()} == dict.fromkeys(HOSTS, 0)
    assert (
        site.ssh("dgx01", "id carla").stdout.strip()
        == "uid=6100(carla) gid=6000(lasers) groups=6000(lasers),6001(night)"
    )
    for host in HOSTS:
        shown = site.ssh(host, "stat -c '%a %U' /etc/sssd/sssd.conf; getent passwd carla").stdout.split("\n")
        assert shown[0] in ("600 root", "640 root") and shown[1].endswith(":/home/carla:/bin/bash")
        site.ssh(host, "install -d -m 700 -o carla -g lasers /home/carla")  # as her first login would
    assert job(site, "carla")[:4] == ["6100", "carla", "6000", "6000 6001"]


def test_who_was_on_the_list_is_locked_and_keeps_the_files(site, key, of_the_directory):
    refused = login(site, key, "anna", HEAD, "true")
    assert refused.returncode == 255, refused.stdout
    assert site.ssh("head", "stat -c %U /shared/home/anna/was-here").stdout.strip() == "anna"


def test_a_directory_that_is_away_stops_nobody_who_was_here(site, of_the_directory):
    assert site.ssh("dgx01", "id -u carla").stdout.strip() == "6100"
    site.ssh("head", "systemctl stop slapd")
    try:
        site.ssh("dgx01", "systemctl restart sssd")
        assert site.ssh("dgx01", "id -u carla").stdout.strip() == "6100"
        assert job(site, "carla")[0] == "6100"
    finally:
        site.ssh("head", "systemctl start slapd")
