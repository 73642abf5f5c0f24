package nvkernel

import (
	"encoding/binary"
	"syscall"
	"unsafe"
)

// Version is that of the module, as /dev/nvidiactl answers. The error is a syscall.Errno.
func Version(control string) (string, error) {
	answer := make([]byte, versionSize)
	binary.NativeEndian.PutUint32(answer, query)
	if err := ask(control, iowr(checkVersion, versionSize), answer); err != nil {
		return "", err
	}
	return version(answer), nil
}

// Cards are those that the driver has brought up. The error is a syscall.Errno.
func Cards(control string) ([]Card, error) {
	answer := make([]byte, mostCards*cardSize)
	if err := ask(control, iowr(cardInfo, uintptr(len(answer))), answer); err != nil {
		return nil, err
	}
	return cards(answer), nil
}

// InitializeUVM does what every CUDA program does first with /dev/nvidia-uvm: it readies the open file, which is closed
// again. The status is an NV_STATUS, 0 for success; the error is a syscall.Errno.
func InitializeUVM(node string) (status uint32, err error) {
	answer := make([]byte, uvmSize)
	if err := ask(node, uvmInitialize, answer); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint32(answer[8:]), nil
}

// ask opens a node, makes one ioctl, and closes it.
func ask(node string, request uintptr, answer []byte) error {
	fd, err := syscall.Open(node, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&answer[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
