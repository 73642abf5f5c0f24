package monitor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// known is what the system knows of a process.
type known struct {
	command string
	uid     int
	parent  int
	began   time.Time
}

// look reads what the system knows of a process.
func look(pid int) (k known, ok bool) {
	if pid <= 0 {
		return k, false
	}
	dir := fmt.Sprintf("/proc/%d", pid)
	info, err := os.Stat(dir)
	if err != nil {
		return k, false
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		k.uid = int(s.Uid)
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return k, false
	}
	name, parent, start, ok := parseStat(stat)
	if !ok {
		return k, false
	}
	k.command, k.parent = name, parent
	k.began = booted().Add(time.Duration(start) * (time.Second / ticksPerSecond))
	if line, err := os.ReadFile(dir + "/cmdline"); err == nil && len(line) > 0 {
		k.command = strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return k, true
}

// ticksPerSecond is USER_HZ, which is 100 on all architectures.
const ticksPerSecond = 100

// parseStat reads /proc/PID/stat: the name, which may hold spaces and parentheses, then the state, the parent, and as the
// 22nd field the start in ticks since the machine's.
func parseStat(stat []byte) (name string, parent int, start uint64, ok bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return "", 0, 0, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 {
		return "", 0, 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[19], 10, 64)
	return string(stat[open+1 : end]), parent, start, err == nil && err2 == nil
}

// booted is when the machine began, as its uptime says.
func booted() time.Time {
	text, _ := os.ReadFile("/proc/uptime")
	first, _, _ := strings.Cut(string(text), " ")
	up, _ := strconv.ParseFloat(first, 64) // 0 without one: processes began now
	return time.Now().Add(-time.Duration(up * float64(time.Second)))
}

// busyTicks are the processors' ticks at work and in all since the machine began.
func busyTicks() (busy, all uint64, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return 0, 0, false
	}
	for i, f := range fields[1:min(len(fields), 9)] { // what guests take is in user's already
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		all += n
		if i != 3 && i != 4 { // idle, and waiting for a disk
			busy += n
		}
	}
	return busy, all, true
}

// memory is that of the machine, and what of it is in use and not to be had by dropping caches.
func memory() (total, used int64, ok bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, false
	}
	of := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			of[name] = n << 10
		}
	}
	available, ok := of["MemAvailable"]
	return of["MemTotal"], of["MemTotal"] - available, ok && of["MemTotal"] > 0
}
