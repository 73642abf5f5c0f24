package presence

import (
	"net"
	"syscall"
)

// peer is the number of the process that listens at the other end, 0 where it is none of this container's.
func peer(c *net.UnixConn) (pid int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || failed != nil {
		return 0, false
	}
	return int(cred.Pid), true
}
