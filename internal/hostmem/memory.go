package hostmem

import "fmt"

// Memory is what addresses name: memory of this process, or of another.
type Memory interface {
	// Read fills p with what lies at an address, and Write puts p there. An error says that some of it is not there, or may not
	// be touched; part of it may have been.
	Read(p []byte, addr uintptr) error
	Write(addr uintptr, p []byte) error
}

// Own is the memory of this process. Its methods do not fail: who names memory that is not there crashes.
type Own struct{}

// Read copies from an address.
func (Own) Read(p []byte, addr uintptr) error {
	copy(p, Bytes(addr, len(p)))
	return nil
}

// Write copies to an address.
func (Own) Write(addr uintptr, p []byte) error {
	copy(Bytes(addr, len(p)), p)
	return nil
}

// Process is the memory of another process, by its number. The system must let this process see it: of the same user, and where
// Yama guards processes (/proc/sys/kernel/yama/ptrace_scope) a descendant or one that has said so.
type Process int

// Read copies from an address of the process.
func (m Process) Read(p []byte, addr uintptr) error {
	return m.inPieces(p, addr, "read", readProcess)
}

// Write copies to an address of the process.
func (m Process) Write(addr uintptr, p []byte) error {
	return m.inPieces(p, addr, "written", writeProcess)
}

// piece is what one call of the system moves at most: some of them stop at 2 GiB.
const piece = 1 << 30

func (m Process) inPieces(p []byte, addr uintptr, done string, move func(pid int, p []byte, addr uintptr) (int, error)) error {
	for at := 0; at < len(p); at += piece {
		part := p[at:min(len(p), at+piece)]
		switch n, err := move(int(m), part, addr+uintptr(at)); {
		case err != nil:
			return fmt.Errorf("%d bytes at %#x of process %d cannot be %s: %w", len(p), addr, int(m), done, err)
		case n < len(part):
			return fmt.Errorf("of %d bytes at %#x of process %d only %d can be %s", len(p), addr, int(m), at+n, done)
		}
	}
	return nil
}
