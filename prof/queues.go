package prof

import (
	"cmp"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// QueueLength is how much work a queue of a device had that was asked for and had not begun. Long queues are good: the device does not
// wait for the host. A maximum near 0 says that it waits for every launch.
type QueueLength struct {
	Device, Queue int
	Changes       int     // of the length: one for each call and one for each beginning
	Mean          float64 // over the changes, as HTA has it
	Max           int
}

// QueueLengths are those of the queues that had work, in their order.
func (p *Profile) QueueLengths() (all []QueueLength) {
	type change struct {
		at   int64
		more int
	}
	type key struct{ device, queue int }
	of := map[key][]change{}
	for i := range p.all {
		if e := p.at(i); e.work() && e.known && !e.Hosted {
			k := key{int(e.Device), int(e.Queue)}
			of[k] = append(of[k], change{e.calls().began, 1}, change{e.began, -1})
		}
	}
	for k, changes := range of {
		sorting.By(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.more, a.more)) })
		q := QueueLength{Device: k.device, Queue: k.queue, Changes: len(changes)}
		length := 0
		for _, c := range changes {
			length += c.more
			q.Mean += float64(length) / float64(len(changes))
			q.Max = max(q.Max, length)
		}
		all = append(all, q)
	}
	sorting.By(all, func(a, b QueueLength) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Queue, b.Queue))
	})
	return all
}

// calls is when the host called for e. The steps of a launch share its time, since it is one call here.
func (e *entry) calls() interval {
	n := int64(1)
	if e.kernel != nil {
		n = int64(max(1, len(e.kernel.Steps)))
	}
	k := int64(e.Step)
	return interval{e.start + e.took*k/n, e.start + e.took*(k+1)/n}
}
