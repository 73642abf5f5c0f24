package monitor

import (
	"os/user"
	"runtime"
	"strconv"
)

// host is what the machine does.
func (s *Sampler) host() Host {
	h := Host{Cores: runtime.NumCPU()}
	if busy, all, ok := busyTicks(); ok {
		if all > s.ticks[1] && s.ticks[1] > 0 && busy >= s.ticks[0] {
			h.Busy = new(100 * float64(busy-s.ticks[0]) / float64(all-s.ticks[1]))
		}
		s.ticks = [2]uint64{busy, all}
	}
	if total, used, ok := memory(); ok {
		h.Memory, h.Used = &total, &used
	}
	return h
}

// userName is the name of a user, or the number of one without.
func userName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return strconv.Itoa(uid)
	}
	return u.Username
}
