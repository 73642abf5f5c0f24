package hostmem

import "golang.org/x/sys/unix"

func readProcess(pid int, p []byte, addr uintptr) (int, error) {
	return unix.ProcessVMReadv(pid, own(p), []unix.RemoteIovec{{Base: addr, Len: len(p)}}, 0)
}

func writeProcess(pid int, p []byte, addr uintptr) (int, error) {
	return unix.ProcessVMWritev(pid, own(p), []unix.RemoteIovec{{Base: addr, Len: len(p)}}, 0)
}

func own(p []byte) []unix.Iovec {
	v := []unix.Iovec{{Base: &p[0]}}
	v[0].SetLen(len(p))
	return v
}
