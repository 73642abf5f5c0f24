package simexec

import (
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/cabi"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// The layout of libcuda/libcuda.c: a head of the size of a slot, the slots, and room for texts.
const (
	version   = 2
	slots     = 255
	textBytes = 32 << 10
	textAt    = 192 * (slots + 1)
)

// The states of a slot.
const (
	idle     = 0
	asked    = 1
	answered = 2
	left     = 3
)

// slot is a thread of the program.
type slot struct {
	state     uint32 // a futex
	owner     uint32 // the thread, 0 for none
	caller    uint32 // sleeps
	server    uint32 // sleeps
	name      uint64 // the address of the function's
	arguments cabi.Args
	result    int32
	_         [44]byte
}

type segment struct {
	version, closed uint32
	_               [184]byte
	slot            [slots]slot
	text            [textBytes]byte
}

// shared maps a new segment, which the file hands on.
func shared() (*segment, hostmem.Block, *os.File, error) {
	b, f, err := hostmem.Share(int(unsafe.Sizeof(segment{})))
	if err != nil {
		return nil, b, nil, err
	}
	g := &hostmem.Slice[segment](b.Addr, 1)[0]
	g.version = version
	return g, b, f, nil
}

const (
	futexWait = 0
	futexWake = 1
)

func wake(word *uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}

func sleep(word *uint32, while uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(while), 0, 0, 0)
}

// spin is how long a thread's next call is waited for before its server sleeps: the one behind a short one comes sooner. Where the two
// have one core the thread cannot call in all that time, so it is short: with 30 µs an empty launch takes 45 µs there, with 5 µs 17 µs.
const spin = 5 * time.Microsecond

// next waits for a call, and returns the state that ended the waiting.
func (s *slot) next() uint32 {
	began := time.Now()
	for n := 1; ; n++ {
		switch now := atomic.LoadUint32(&s.state); {
		case now == asked || now == left:
			return now
		case n%64 != 0 || time.Since(began) < spin:
			continue
		}
		atomic.StoreUint32(&s.server, 1)
		if now := atomic.LoadUint32(&s.state); now == idle || now == answered {
			sleep(&s.state, now)
		}
		atomic.StoreUint32(&s.server, 0)
	}
}

// answer gives the result of a call to its thread.
func (s *slot) answer(r int32) {
	s.result = r
	atomic.StoreUint32(&s.state, answered)
	if atomic.LoadUint32(&s.caller) != 0 {
		wake(&s.state)
	}
}

// hang lets the server of the slot, and its thread, find the session closed.
func (s *slot) hang() {
	atomic.StoreUint32(&s.state, left)
	wake(&s.state)
}
