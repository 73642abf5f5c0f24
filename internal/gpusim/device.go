package gpusim

import (
	"sync"

	"github.com/warpline-ml/warpline/internal/gpusim/memory"
)

// Device is a simulated GPU: memory and the kernels that run on it. Its methods may be called from any goroutine;
// they run one after the other.
type Device struct {
	Card Card
	*memory.Memory

	serial uint64 // of launches

	watching sync.Mutex
	observer func(c *Call)
}

// NewDevice makes a GPU without allocations. With track, which initcheck of global memory needs, it remembers what has
// been written, one byte for each byte, and fills new memory with a pattern instead of zeros.
func NewDevice(card Card, track bool) *Device { return newDevice(0, card, track) }

func newDevice(n int, card Card, track bool) *Device {
	return &Device{Card: card, Memory: memory.New(card.Memory, n, track)}
}

// NewDevices makes n GPUs, at most 16, whose addresses differ.
func NewDevices(n int, card Card, track bool) ([]*Device, error) {
	if n < 1 || n > memory.MaxDevices {
		return nil, memory.Refuse(InvalidValue, "%d devices; there can be 1 to %d", n, memory.MaxDevices)
	}
	list := make([]*Device, n)
	for i := range list {
		list[i] = newDevice(i, card, track)
	}
	return list, nil
}

// SetPeers names the devices of the same NewDevices whose memory d's kernels may access. While one of its kernels runs,
// no other goroutine may use these devices.
func (d *Device) SetPeers(peers []*Device) {
	list := make([]*memory.Memory, len(peers))
	for i, p := range peers {
		list[i] = p.Memory
	}
	d.Memory.SetPeers(list)
}

// Copy copies n bytes within a device or between two, with what is known of their having been written.
func Copy(dst *Device, to uint64, src *Device, from uint64, n int) error {
	return memory.Copy(dst.Memory, to, src.Memory, from, n)
}

// Fault is the sticky error, or nil.
func (d *Device) Fault() *Fault {
	d.Lock()
	defer d.Unlock()
	f, _ := d.Failed().(*Fault)
	return f
}
