"""Writes versions.txt and markers.txt: what the reference implementation (package packaging) says of versions and markers.

    python pep440.py
"""
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import Version

versions = ["1.9", "1.10", "1.10.0", "2.0.dev5", "2.0a1", "2.0b2", "2.0rc1", "2.0", "2.0.0", "2.0.post1", "2.0.1", "2.1.0+cu118",
            "2.10.0.dev20260901+cu130", "2.10.0", "12.4.5.8", "13.2.86", "3.9.0", "3.9.4", "3.10.0", "9.26.0.51"]
specs = ["==2.0", "==2.0.*", "==2.1.0", "==2.1.0+cu118", "==2.1.0+cu121", "!=2.0", "!=2.0.*", "<2.0", "<=2.0", ">2.0", ">=2.0", ">=2.0rc1", "<2.0.post1", ">2.0.post1",
         "~=3.9.0", "~=3.9", "<14,>=13.0.3", "==12.4.5.8", "==13.2.86.*", "==9.26.0.51", ">=1.10", "~=2.0.0", "==2.10.0.dev20260901", ">2.0a1", "<2.0b2", ""]
with open("versions.txt", "w") as out:
    for a in versions:
        for b in versions:
            x, y = Version(Version(a).public), Version(Version(b).public)
            print("order", a, b, (x > y) - (x < y), file=out)
        for spec in specs:
            print("meets", a, spec or "-", SpecifierSet(spec).contains(a, prereleases=True), file=out)

markers = [
    'platform_system == "Linux"', "sys_platform == 'win32'", 'platform_system == "Linux" and platform_machine == "x86_64"',
    'platform_system == "Linux" and python_version < "3.15"', 'python_version < "3.9"', 'python_version >= "3.10"', 'extra == "cublas"',
    "(sys_platform == 'linux' and platform_machine == 'aarch64' or sys_platform == 'linux' and platform_machine == 'x86_64' or sys_platform == 'win32' and "
    "platform_machine == 'AMD64') and extra == 'cublas'", 'platform_machine != "aarch64"', '"win" in sys_platform', 'platform_machine in "x86_64 AMD64"',
    'platform_machine not in "x86_64 AMD64"', '((os_name == "posix"))', 'sys_platform == "darwin" or python_full_version >= "3.11.2"', "implementation_name == 'pypy'",
]
hosts = {
    "linux/x86_64/3.11.7": dict(sys_platform="linux", platform_system="Linux", platform_machine="x86_64", os_name="posix"),
    "linux/arm64/3.8.1": dict(sys_platform="linux", platform_system="Linux", platform_machine="aarch64", os_name="posix"),
    "windows/x86_64/3.12.1": dict(sys_platform="win32", platform_system="Windows", platform_machine="AMD64", os_name="nt"),
    "darwin/arm64/3.13.0": dict(sys_platform="darwin", platform_system="Darwin", platform_machine="arm64", os_name="posix"),
}
with open("markers.txt", "w") as out:
    for host, env in hosts.items():
        version = host.rsplit("/", 1)[1]
        env |= dict(python_full_version=version, python_version=version.rsplit(".", 1)[0], implementation_name="cpython", platform_python_implementation="CPython")
        for extra in ["", "cublas"]:
            for m in markers:
                print(host, extra or "-", Marker(m).evaluate(env | {"extra": extra}), m, sep="\t", file=out)
