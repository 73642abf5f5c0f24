package tensor

import (
	"fmt"
	"strings"
)

// String is the device's name and model.
func (d *Device) String() string { return d.Info() }

// String names the device and the modes that are set: "cpu, no gradients, evaluation, bfloat16".
func (e *Env) String() string {
	words := []string{e.dev.name}
	for _, m := range []struct {
		mode    mode
		on, off string
	}{{e.grad, "gradients", "no gradients"}, {e.train, "training", "evaluation"}} {
		switch m.mode {
		case on:
			words = append(words, m.on)
		case off:
			words = append(words, m.off)
		}
	}
	if e.policy.Valid() {
		words = append(words, e.policy.String())
	}
	if e.products != 0 {
		words = append(words, "products "+e.products.String())
	}
	if e.queue != nil {
		words = append(words, fmt.Sprint("queue ", e.queue.id))
	}
	if e.scope.Closed() != nil {
		words = append(words, "ended")
	}
	return strings.Join(words, ", ")
}

// String names the queue's device and its number there.
func (q *Queue) String() string { return fmt.Sprintf("queue %d of %s", q.q.id, q.q.dev.name) }

// String tells the scope's device, and whether it is open.
func (s Scope) String() string {
	switch {
	case s.s == nil:
		return "no scope"
	case s.s.Closed() != nil:
		return "scope of " + s.s.dev.name + ", ended"
	}
	return "scope of " + s.s.dev.name
}

// String tells what the slot holds, without its values.
func (s *Slot) String() string {
	if s.cur == nil {
		return "empty slot"
	}
	return "slot of " + s.cur.typ.String()
}

// String is the value, if the host has asked for it already; it waits for nothing.
func (p *Pending) String() string {
	if p.got {
		return fmt.Sprint(p.value)
	}
	return "a value on its way from " + p.dev.name
}

// String tells the operation's operands.
func (c *Call) String() string {
	words := make([]string, len(c.types))
	for i, t := range c.types {
		words[i] = t.String()
	}
	return "Func(" + strings.Join(words, ", ") + ")"
}
