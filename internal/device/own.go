package device

import (
	"fmt"
	"slices"
)

// Loader is a [Device] that runs kernels of the program's own.
type Loader interface {
	// Load compiles a module of PTX under a name for messages. The error has what the compiler says.
	Load(name string, ptx []byte) (Module, error)
}

// Module is kernels of the program's own on a device, as long as that is open.
type Module interface {
	// Prepare makes a launch ready for the queues of the device. The error says what card or kernel cannot.
	Prepare(l *Own) (*Kernel, error)
}

// Own is a launch of a kernel of the program's own.
type Own struct {
	Kernel               string // as the module has it
	Name                 string // for people
	Grid, Block, Cluster [3]int // a cluster of no blocks is none
	Shared               int    // bytes of shared memory that are asked for at the launch
	Params               []byte // the kernel's parameters, with zeros where addresses go
	Places               []Place
	Need                 []int64 // bytes of each argument that the kernel may touch, those that it writes first
	Written              int     // of these arguments
}

// Place is where the address of an argument goes among the bytes of a kernel's parameters.
type Place struct{ At, Arg int }

// AsKernel is the launch for those who watch it or count it; an engine adds what it launches by.
func (l *Own) AsKernel() *Kernel {
	k := &Kernel{Name: l.Name, Steps: []Step{{Name: l.Kernel, Grid: l.Grid, Block: l.Block, Shared: l.Shared, Numbers: l.numbers()}}}
	for i, n := range l.Need {
		k.Bytes += n
		if i < l.Written {
			k.Stored += n
		}
	}
	k.own = l
	return k
}

// numbers are the parameters as words; addresses are 1.
func (l *Own) numbers() []int32 {
	raw := slices.Clone(l.Params)
	raw = append(raw, make([]byte, -len(raw)&3)...)
	for _, p := range l.Places {
		raw[p.At] = 1
	}
	list := make([]int32, len(raw)/4)
	for i := range list {
		for j := range 4 {
			list[i] |= int32(raw[4*i+j]) << (8 * j)
		}
	}
	return list
}

// What is what a kernel does, in a word: its operation, or the name of the program's own kernel.
func (k *Kernel) What() string {
	if k.own != nil {
		return "kernel " + k.Name
	}
	return k.Op.Code.String()
}

// String is the operation with its operands, or the launch of the program's own kernel.
func (k *Kernel) String() string {
	if k.own == nil {
		return k.Op.String()
	}
	return fmt.Sprintf("kernel %s, %s blocks of %s", k.Name, by(k.own.Grid), by(k.own.Block))
}

func by(d [3]int) string { return fmt.Sprintf("%d×%d×%d", d[0], d[1], d[2]) }

// Differs tells how a launch of k differs from one of another kernel, whatever their arguments; "" where it does not.
func (k *Kernel) Differs(other *Kernel) string {
	a, b := k.own, other.own
	switch {
	case a == nil && b == nil && k.Op == other.Op:
		return ""
	case a == nil || b == nil || a.Kernel != b.Kernel:
		return "another operation"
	case a.Grid != b.Grid || a.Block != b.Block || a.Cluster != b.Cluster || a.Shared != b.Shared:
		return "another grid"
	case !slices.Equal(a.Params, b.Params) || !slices.Equal(a.Places, b.Places):
		return "other numbers"
	case !slices.Equal(a.Need, b.Need):
		return "values of other sizes"
	}
	return ""
}

// Args is how many arguments a launch takes.
func (k *Kernel) Args() int {
	if k.own != nil {
		return len(k.own.Need)
	}
	n := len(k.Out) + k.Op.NumIn()
	if k.Workspace > 0 {
		n++
	}
	return n
}
