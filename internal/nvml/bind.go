package nvml

import (
	"bytes"
	"slices"
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/dl"
)

// Handle is a card, or an instance of one, as the library names it.
type Handle uintptr

// api is the library's functions, each of which may be missing: it answers FunctionNotFound then.
type api struct {
	init, shutdown          dl.Proc
	driverVersion           dl.Proc
	cudaVersion             dl.Proc
	count, byIndex          dl.Proc
	name, uuid, pci         dl.Proc
	memory, memoryOld       dl.Proc
	utilization             dl.Proc
	eccMode, migMode        dl.Proc
	instances, instance     dl.Proc
	processes               [2]listing // compute, graphics
	busy                    dl.Proc
	scalars                 []dl.Proc // of the table of the same name
	instanceID, computePart dl.Proc
	health                  health
}

// listing is a function that lists processes.
type listing struct {
	dl.Proc
	old bool // with the elements of its first version
}

// The structures of nvml.h, field by field; the tests compare their layout with a C compiler's.
type (
	memoryV1 struct{ Total, Free, Used uint64 }
	memoryV2 struct {
		Version                     uint32
		Total, Reserved, Free, Used uint64
	}
	utilization struct{ GPU, Memory uint32 }
	processV1   struct {
		PID  uint32
		Used uint64
	}
	processV2 struct {
		PID               uint32
		Used              uint64
		Instance, Compute uint32
	}
	sample struct {
		PID                          uint32
		Stamp                        uint64
		SM, Memory, Encoder, Decoder uint32
	}
	pciInfo struct {
		Legacy                                 [16]byte
		Domain, Bus, Device, DeviceID, SubsysX uint32
		ID                                     [32]byte
	}
)

// memoryVersion is NVML_STRUCT_VERSION(Memory, 2).
const memoryVersion = uint32(unsafe.Sizeof(memoryV2{})) | 2<<24

// scratch is what a call may point to: heap objects stay where they are, stacks do not. Nothing of it is kept.
type scratch struct {
	word      [2]uint64
	text      [256]byte
	memoryV1  memoryV1
	memoryV2  memoryV2
	rates     utilization
	pci       pciInfo
	processes []processV2
	old       []processV1
	samples   []sample
	rows      [4]uint32
	fabric    fabricInfo
	violation violation
	licences  licences
}

var scratches = sync.Pool{New: func() any {
	return &scratch{processes: make([]processV2, atFirst), old: make([]processV1, atFirst), samples: make([]sample, atFirst)}
}}

// How many entries lists have room for, at first and at most.
const (
	atFirst = 64
	atMost  = 1 << 14
)

// bind fills the table.
func bind(lib *dl.Library) *api {
	find := func(symbols ...string) dl.Proc {
		for _, s := range symbols {
			if p, err := lib.Lookup(s); err == nil {
				return p
			}
		}
		return 0
	}
	a := new(api)
	a.init, a.shutdown = find("nvmlInit_v2"), find("nvmlShutdown")
	a.driverVersion, a.cudaVersion = find("nvmlSystemGetDriverVersion"), find("nvmlSystemGetCudaDriverVersion_v2")
	a.count, a.byIndex = find("nvmlDeviceGetCount_v2"), find("nvmlDeviceGetHandleByIndex_v2")
	a.name, a.uuid, a.pci = find("nvmlDeviceGetName"), find("nvmlDeviceGetUUID"), find("nvmlDeviceGetPciInfo_v3")
	a.memory, a.memoryOld = find("nvmlDeviceGetMemoryInfo_v2"), find("nvmlDeviceGetMemoryInfo")
	a.utilization = find("nvmlDeviceGetUtilizationRates")
	a.eccMode, a.migMode = find("nvmlDeviceGetEccMode"), find("nvmlDeviceGetMigMode")
	a.instances, a.instance = find("nvmlDeviceGetMaxMigDeviceCount"), find("nvmlDeviceGetMigDeviceHandleByIndex")
	a.instanceID, a.computePart = find("nvmlDeviceGetGpuInstanceId"), find("nvmlDeviceGetComputeInstanceId")
	for i, what := range []string{"Compute", "Graphics"} {
		symbol := "nvmlDeviceGet" + what + "RunningProcesses"
		a.processes[i] = listing{Proc: find(symbol+"_v3", symbol+"_v2")}
		if a.processes[i].Proc == 0 {
			a.processes[i] = listing{find(symbol), true}
		}
	}
	a.busy = find("nvmlDeviceGetProcessUtilization")
	a.health = bindHealth(find)
	for _, s := range scalars {
		a.scalars = append(a.scalars, find(s.symbols...))
	}
	return a
}

// call calls a function, or says that this driver lacks it.
func call(p dl.Proc, args ...uintptr) Return {
	if p == 0 {
		return FunctionNotFound
	}
	return Return(p.Call(args...))
}

// with lends f a scratch.
func with[T any](f func(s *scratch) (T, Return)) (T, Return) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	v, r := f(s)
	if r != Success {
		var none T
		return none, r
	}
	return v, r
}

// text calls a function that writes a text of a card; of the library without one.
func text(p dl.Proc, of ...uintptr) (string, Return) {
	return with(func(s *scratch) (string, Return) {
		clear(s.text[:])
		r := call(p, append(of, uintptr(unsafe.Pointer(&s.text[0])), uintptr(len(s.text)-1))...)
		return terminated(s.text[:]), r
	})
}

// terminated is a C string, cut where there is room for no more.
func terminated(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(bytes.ToValidUTF8(b, []byte("?")))
}

// number calls a function whose last parameter points to its result of 32 or 64 bits.
func number(p dl.Proc, args ...uintptr) (uint64, Return) {
	return with(func(s *scratch) (uint64, Return) {
		s.word[0] = 0
		r := call(p, append(args, uintptr(unsafe.Pointer(&s.word[0])))...)
		return s.word[0], r
	})
}

// modes calls a function with two results of 32 bits: what is, and what will be after a reset.
func modes(p dl.Proc, h Handle) (now [2]uint64, r Return) {
	return with(func(s *scratch) ([2]uint64, Return) {
		s.word = [2]uint64{}
		r := call(p, uintptr(h), uintptr(unsafe.Pointer(&s.word[0])), uintptr(unsafe.Pointer(&s.word[1])))
		return s.word, r
	})
}

// bus is the address of a card.
func (a *api) bus(h Handle) (string, Return) {
	return with(func(s *scratch) (string, Return) {
		s.pci = pciInfo{}
		r := call(a.pci, uintptr(h), uintptr(unsafe.Pointer(&s.pci)))
		return terminated(s.pci.ID[:]), r
	})
}

// memoryOf is the memory of a card. Before the second version what the driver keeps for itself counted as used.
func (a *api) memoryOf(h Handle) (memoryV2, Return) {
	return with(func(s *scratch) (memoryV2, Return) {
		s.memoryV2 = memoryV2{Version: memoryVersion}
		if r := call(a.memory, uintptr(h), uintptr(unsafe.Pointer(&s.memoryV2))); r != FunctionNotFound && r != ArgumentVersion {
			return s.memoryV2, r
		}
		s.memoryV1 = memoryV1{}
		r := call(a.memoryOld, uintptr(h), uintptr(unsafe.Pointer(&s.memoryV1)))
		m := s.memoryV1
		return memoryV2{Total: m.Total, Free: m.Free, Used: m.Used}, r
	})
}

func (a *api) rates(h Handle) (utilization, Return) {
	return with(func(s *scratch) (utilization, Return) {
		s.rates = utilization{}
		r := call(a.utilization, uintptr(h), uintptr(unsafe.Pointer(&s.rates)))
		return s.rates, r
	})
}

// running lists the processes on a card. Their number may change between two calls.
func (a *api) running(l listing, h Handle) ([]processV2, Return) {
	return with(func(s *scratch) ([]processV2, Return) {
		for {
			at := unsafe.Pointer(&s.processes[0])
			if l.old {
				at = unsafe.Pointer(&s.old[0])
			}
			room := len(s.processes)
			s.word[0] = uint64(room)
			r := call(l.Proc, uintptr(h), uintptr(unsafe.Pointer(&s.word[0])), uintptr(at))
			n := int(uint32(s.word[0]))
			switch {
			case r == InsufficientSize && room < atMost:
				s.processes, s.old = make([]processV2, 4*room), make([]processV1, 4*room)
				continue
			case r == Success && n > room:
				return nil, unreasonableCount
			case r != Success:
				return nil, r
			case l.old:
				for i, p := range s.old[:n] {
					s.processes[i] = processV2{PID: p.PID, Used: p.Used}
				}
			}
			return slices.Clone(s.processes[:n]), r
		}
	})
}

// samples are how busy each process kept the multiprocessors, sampled since the library's stamp. The list comes before its
// length here.
func (a *api) samples(h Handle, since uint64) ([]sample, Return) {
	return with(func(s *scratch) ([]sample, Return) {
		for {
			room := len(s.samples)
			s.word[0] = uint64(room)
			r := call(a.busy, uintptr(h), uintptr(unsafe.Pointer(&s.samples[0])), uintptr(unsafe.Pointer(&s.word[0])), uintptr(since))
			n := int(uint32(s.word[0]))
			switch {
			case r == InsufficientSize && room < atMost:
				s.samples = make([]sample, 4*room)
				continue
			case r == Success && n > room:
				return nil, unreasonableCount
			case r != Success:
				return nil, r
			}
			return slices.Clone(s.samples[:n]), r
		}
	})
}
