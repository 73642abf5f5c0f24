package simexec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/warpline-ml/warpline/internal/cuda/cabi"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// What a connection says first.
const (
	hello  = 0x57a4b11e00000000 | version
	forked = 0x57a4b11eff000000
)

// session is a process that calls.
type session struct {
	run     *run
	pid     int
	conn    *net.UnixConn
	segment *segment
	block   hostmem.Block
	cards   *simcuda.System
	process *cabi.Process
	stop    chan struct{}
	once    sync.Once
	threads sync.WaitGroup
	texts   int           // bytes of the room for texts that are taken
	base    uint64        // of the segment in the process
	pinned  hostmem.Block // that the process offers for the allocation under way
}

// converse serves a connection to its end.
func (x *run) converse(conn *net.UnixConn) {
	defer conn.Close()
	word, err := receive(conn)
	if err != nil {
		return
	}
	pid := peer(conn)
	switch word {
	case forked:
		x.note("process %d was forked from one that used the driver, which its calls are refused for: "+
			"CUDA_ERROR_NOT_INITIALIZED (3). Start processes afresh (in Python: multiprocessing's spawn), or fork before cuInit", pid)
	case hello:
		if err := x.serve(conn, pid); err != nil {
			x.note("process %d: %v", pid, err)
		}
	default:
		x.note("process %d has the libcuda.so.1 of another warpline", pid)
	}
}

func receive(conn *net.UnixConn) (uint64, error) {
	var p [8]byte
	_, err := io.ReadFull(conn, p[:])
	return binary.LittleEndian.Uint64(p[:]), err
}

// peer is the process at the other end.
func peer(conn *net.UnixConn) (pid int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(c.Pid)
		}
	})
	return pid
}

// serve gives a process its session and serves its threads until it ends.
func (x *run) serve(conn *net.UnixConn, pid int) error {
	s := &session{run: x, pid: pid, conn: conn, stop: make(chan struct{})}
	var file *os.File
	var err error
	if s.segment, s.block, file, err = shared(); err != nil {
		return err
	}
	defer s.block.Free()
	defer file.Close()
	if err := s.simulate(); err != nil {
		return err
	}
	if !x.begin(s) {
		return nil
	}
	defer s.left()
	defer s.close()
	if _, _, err := conn.WriteMsgUnix([]byte{1}, unix.UnixRights(int(file.Fd())), nil); err != nil {
		return err
	}
	if s.base, err = receive(conn); err != nil {
		return err
	}
	if err := s.process.Memory.Read(make([]byte, 8), uintptr(s.base)); err != nil {
		return fmt.Errorf("%w. Where the system forbids it, an administrator allows it by: sysctl kernel.yama.ptrace_scope=1", err)
	}
	x.report.began()
	for {
		i, err := receive(conn)
		if err != nil || i >= slots {
			return nil // the process has ended, or has begun another program
		}
		s.threads.Add(1)
		go s.thread(int(i))
	}
}

// simulate makes the cards of the process.
func (s *session) simulate() error {
	c := s.run.sim
	c.Host, c.Stop, c.OnRun = s, s.stop, s.ran
	sys, err := simcuda.New(c)
	if err != nil {
		return err
	}
	s.cards = sys
	s.process = cabi.NewProcess(sys.API(), hostmem.Process(s.pid))
	s.process.Keep, s.process.ReadFile, s.process.Offer = s.keep, s.readFile, s.offer
	return nil
}

// close ends the calls of the process, whose threads find that out by themselves.
func (s *session) close() {
	s.once.Do(func() {
		atomic.StoreUint32(&s.segment.closed, 1)
		close(s.stop)
		s.conn.Close()
		for i := range s.segment.slot {
			s.segment.slot[i].hang()
		}
	})
}

// left reports, once the threads are through, what the process had of the cards' memory, and did with it that it should not.
func (s *session) left() {
	s.threads.Wait()
	s.run.report.left(s.cards.Leaks(), s.cards.Misuses())
	for _, n := range s.cards.Notes() {
		s.run.report.add(n)
	}
}

func (s *session) closed() bool { return atomic.LoadUint32(&s.segment.closed) != 0 }

// named is a function that a thread has called.
type named struct {
	name  string
	f     cabi.Function
	known bool
}

// thread serves a thread of the process, on a thread of its own: the driver knows threads by what they call on.
func (s *session) thread(i int) {
	defer s.threads.Done()
	runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
	t, slot := s.process.NewThread(), &s.segment.slot[i]
	functions := map[uint64]named{}
	for !s.closed() && slot.next() == asked && !s.closed() {
		f, ok := functions[slot.name]
		if !ok {
			f = s.lookup(slot.name)
			functions[slot.name] = f
		}
		arguments := slot.arguments // which the process could change
		slot.answer(int32(s.call(t, f, &arguments)))
	}
	t.End()
	if !s.closed() {
		atomic.StoreUint32(&slot.state, idle)
		atomic.StoreUint32(&slot.owner, 0)
	}
}

// lookup finds the function whose name lies at an address of the process.
func (s *session) lookup(at uint64) named {
	const longest = 80 // more than any name has
	p := make([]byte, longest)
	if err := s.process.Memory.Read(p, uintptr(at)); err != nil {
		return named{name: "a function without a name"}
	}
	name, _, _ := strings.Cut(string(p), "\x00")
	f, ok := cabi.Find(name)
	return named{name, f, ok}
}

func (s *session) call(t *cabi.Thread, f named, a *cabi.Args) driver.Result {
	s.run.report.calls.Add(1)
	if !f.known {
		if s.run.report.failed(f.name, driver.NotSupported, cabi.Refusal(f.name)) {
			s.run.say("%s is refused: %v (%d): %s", f.name, driver.NotSupported, driver.NotSupported, cabi.Refusal(f.name))
		}
		return driver.NotSupported
	}
	r := t.Call(f.f, a)
	switch {
	case r == driver.Success, r == driver.NotReady:
	case r.Sticky():
		s.run.report.failed(f.name, r, "") // the finding says it
	default:
		s.run.report.failed(f.name, r, t.Why())
	}
	return r
}

// ran is told of each launch.
func (s *session) ran(r simcuda.Run) {
	s.run.report.ran(r, s.process.Image(r.Module))
}

// keep puts a text where the process sees it, for as long as it lives.
func (s *session) keep(text string) uint64 {
	room := s.segment.text[s.texts:]
	if len(text) >= len(room) {
		return 0
	}
	at := s.base + uint64(textAt+s.texts)
	copy(room, text)
	s.texts += len(text) + 1
	return at
}

// readFile reads a file by the name that the process has for it.
func (s *session) readFile(name string) ([]byte, error) {
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(fmt.Sprintf("/proc/%d/cwd", s.pid), name)
	}
	b, err := os.ReadFile(path)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		pe.Path = name
	}
	return b, err
}

// The session is the host of its cards (simcuda.Host). Pinned memory is set aside by the process, which offers it before the driver
// asks for it.

func (s *session) offer(addr uintptr, n int64) { s.pinned = hostmem.Block{Addr: addr, Size: int(n)} }

// Read implements simcuda.Host.
func (s *session) Read(p []byte, addr uintptr) error { return s.process.Memory.Read(p, addr) }

// Write implements simcuda.Host.
func (s *session) Write(addr uintptr, p []byte) error { return s.process.Memory.Write(addr, p) }

// Alloc implements simcuda.Host.
func (s *session) Alloc(int) (hostmem.Block, error) { return s.pinned, nil }

// Free implements simcuda.Host: the process takes its memory back.
func (s *session) Free(hostmem.Block) error { return nil }
