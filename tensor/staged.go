package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Staged is a value on its way to a device: numbers in memory that the device copies from. The workers of a loader make
// them, so that the goroutine that trains copies nothing. It is used up by [Staged.In] or [Staged.Drop].
type Staged struct {
	dev  *Device
	what device.Staged
	typ  *ir.Type
}

// mostStaged bounds what one value takes of memory that the system cannot move.
const mostStaged = 64 << 20

// Stage copies data of a shape to where e's device uploads from. Any goroutine may call it. It is nil where nothing is won
// by it or it fails, and [From] serves: for a device that reads the host's memory or computes nothing, and for much or no
// data.
func Stage[T dtype.Element](e *Env, data []T, shape ...int) *Staged {
	e.present("Stage")
	checkShape("Stage", shape)
	typ, q := ir.Dense(dtype.Of[T](), shape...), e.onQueue()
	if typ.Size() != len(data) {
		raise("Stage", "give as many values as the shape has", "%d values for shape %v", len(data), shape)
	}
	if q.stager == nil || len(data) == 0 || typ.Bytes() > mostStaged {
		return nil
	}
	s, err := q.stager.Stage(device.BytesOf(data))
	if err != nil {
		return nil // From says why, where somebody listens
	}
	return &Staged{q.dev, s, typ}
}

// In makes the value in e, an env of the device that it was staged for.
func (s *Staged) In(e *Env) *Tensor {
	e.present("Staged.In")
	if e.dev != s.dev {
		raise("Staged.In", "stage it for the env that it is made in", "a value staged for %s, an env on %s", s.dev.name, e.dev.name)
	}
	hostWork("Staged.In", "make the value before, or pass it in the batch", "the host's data would be copied once, and not in each run")
	t := e.make(ir.Copy, s.typ, 0, nil, nil)
	q := e.onQueue()
	start := q.copies()
	q.uncrowd()
	q.mu.Lock()
	err := q.stager.Send(t.arg(), s.what)
	q.mu.Unlock()
	if err != nil {
		raiseErr("Staged.In", "", err)
	}
	q.copied(e, device.CopyUpload, t.arg(), ownMemory(t.Bytes()), t.Bytes(), start)
	return t
}

// String tells the value's type and where it is going.
func (s *Staged) String() string { return s.typ.String() + ", staged for " + s.dev.name }

// Drop gives back the memory of a value that is not needed.
func (s *Staged) Drop() { s.what.Drop() }
