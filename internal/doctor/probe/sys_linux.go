package probe

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/warpline-ml/warpline/internal/doctor"
)

const nonblock = syscall.O_NONBLOCK

// readRecord reads without the runtime's poller, which would wait for more.
func readRecord(f *os.File, b []byte) (int, error) {
	n, err := unix.Read(int(f.Fd()), b)
	for err == unix.EPIPE || err == unix.EINTR { // records were overwritten meanwhile
		n, err = unix.Read(int(f.Fd()), b)
	}
	return n, err
}

func statNode(path string) (n doctor.Node) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return doctor.Node{Open: errno(err)}
	}
	return doctor.Node{There: true, Major: int(unix.Major(uint64(s.Rdev))), Minor: int(unix.Minor(uint64(s.Rdev))), Mode: int(s.Mode & 0o777), UID: int(s.Uid), GID: int(s.Gid)}
}

func openNode(path string) string    { return try(path, unix.O_RDWR) }
func opensToRead(path string) string { return try(path, unix.O_RDONLY) }

func try(path string, flags int) string {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return errno(err)
	}
	unix.Close(fd)
	return "ok"
}

// resources by the names of ulimit.
var resources = map[string]int{"nofile": unix.RLIMIT_NOFILE, "memlock": unix.RLIMIT_MEMLOCK, "as": unix.RLIMIT_AS, "nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK}

// ulimits are soft limits; -1 is none.
func ulimits() map[string]int64 {
	out := map[string]int64{}
	for name, r := range resources {
		var l unix.Rlimit
		if unix.Getrlimit(r, &l) != nil {
			continue
		}
		out[name] = -1
		if l.Cur < 1<<62 {
			out[name] = int64(l.Cur)
		}
	}
	return out
}

// magics are numbers of file systems.
var magics = map[int64]string{0x01021994: "tmpfs", 0x6969: "nfs", 0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x794c7630: "overlay", 0xff534d42: "cifs",
	0xfe534d42: "smb2", 0x00c36400: "ceph", 0x65735546: "fuse", 0x01021997: "9p", 0x2fc12fc1: "zfs", 0x47504653: "gpfs", 0x5346414f: "afs", 0x0bd00bd0: "lustre", 0x858458f6: "ramfs", 0x6a656a63: "virtiofs"}

// filesystem is what a folder lies on.
func filesystem(path string, p *doctor.Place) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		p.Errno = errno(err)
		return
	}
	unit := int64(s.Bsize)
	p.Type, p.Total, p.Free = magics[int64(uint32(s.Type))], int64(s.Blocks)*unit, int64(s.Bavail)*unit
	if s.Files > 0 {
		p.Files = new(int64(s.Ffree))
	}
	p.ReadOnly, p.NoExec = s.Flags&unix.ST_RDONLY != 0, s.Flags&unix.ST_NOEXEC != 0
	p.Writable = new(unix.Access(path, unix.W_OK) == nil)
}

// owner of a file, -1 of one that is not there.
func owner(path string) int {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return -1
	}
	return int(s.Uid)
}
