package kineto

import (
	"cmp"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// collectivesLimit is how many kernels of communication are kept with their arguments.
const collectivesLimit = 200_000

// communication keeps what is written about a kernel of communication: 1 + its index.
func (rd *reading) communication(e *event) uint32 {
	if len(rd.Collectives) >= collectivesLimit {
		return 0
	}
	p, names := &rd.p.coll, rd.names
	text := func(b []byte) string { return names.names[names.id(b)] }
	name := names.names[e.name]
	c := Collective{Kernel: name, Name: text(p.name), Group: text(p.group), Ranks: text(p.ranks), DType: text(p.dtype),
		Size: int(p.size), Seq: p.seq, In: p.in, Out: p.out, P2P: p.p2p,
		Device: int(rd.p.device), Stream: rd.p.stream, Window: Window{e.start, e.end()}, Launched: e.start}
	if c.Name == "" {
		c.Name = operation(name)
	}
	c.P2P = c.P2P || isPointToPoint(c.Name, name)
	rd.Collectives = append(rd.Collectives, c)
	return uint32(len(rd.Collectives))
}

// operations are words of kernels' names with what they do, as the recorder calls it.
var operations = [][2]string{
	{"allreduce", "allreduce"}, {"all_reduce", "allreduce"}, {"cross_device_reduce", "allreduce"},
	{"reducescatter", "_reduce_scatter_base"}, {"reduce_scatter", "_reduce_scatter_base"},
	{"allgather", "_allgather_base"}, {"all_gather", "_allgather_base"}, {"broadcast", "broadcast"}, {"alltoall", "all_to_all"},
	{"sendrecv", "sendrecv"}, {"reduce", "reduce"},
}

// operation is what a kernel of communication does, by its name; "" where that does not say.
func operation(kernel string) string {
	lower := strings.ToLower(kernel)
	for _, o := range operations {
		if strings.Contains(lower, o[0]) {
			return o[1]
		}
	}
	return ""
}

// isPointToPoint tells sends and receives of one from what a whole group does. An exchange among all is made of the same
// kernel, so the kernel counts only where the recorder does not name the operation.
func isPointToPoint(name, kernel string) bool {
	switch strings.ToLower(name) {
	case "send", "recv", "isend", "irecv", "sendrecv":
		return true
	}
	return name == "" && strings.Contains(strings.ToLower(kernel), "sendrecv")
}

// finishCollectives puts them in order, with their launches, and numbers those of each group and name.
func (t *Trace) finishCollectives() {
	for i := range t.device {
		e := &t.device[i]
		if e.kind != kernel || e.ext == 0 {
			continue
		}
		if l := t.launched(i); l != nil {
			t.Collectives[e.ext-1].Launched = l.start
		}
	}
	sorting.By(t.Collectives, func(a, b Collective) int { return cmp.Compare(a.Launched, b.Launched) })
	order := map[[2]string]int{}
	for i := range t.Collectives {
		c := &t.Collectives[i]
		key := [2]string{c.Group, c.Name}
		c.Order = order[key]
		order[key]++
	}
	for i := range t.device { // their places have changed, and are not needed again
		if t.device[i].kind == kernel {
			t.device[i].ext = 0
		}
	}
	sorting.By(t.Collectives, func(a, b Collective) int { return cmp.Compare(a.Start, b.Start) })
}
