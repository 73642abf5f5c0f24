package probe

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/xid"
)

// logFiles are where distributions keep the kernel's log.
var logFiles = []string{"/var/log/kern.log", "/var/log/dmesg", "/var/log/messages", "/var/log/syslog"}

// mostLog is how much of a log is read, from its end.
const mostLog = 4 << 20

// log reads what the kernel says of cards: its ring, or else the file that a distribution keeps of it.
func (p *prober) log() doctor.Log {
	text, err := p.ring()
	l := doctor.Log{Source: "kmsg", Errno: errno(err)}
	if err != nil {
		l.Source = ""
		for _, name := range logFiles {
			if b, err := tail(p.path(name)); err == nil {
				text, l.Source = b, "file"
				break
			}
		}
	}
	if l.Source != "" {
		l.Events = events(text)
	}
	return l
}

// ring reads /dev/kmsg, which gives a record a read.
func (p *prober) ring() ([]byte, error) {
	f, err := os.OpenFile(p.path("/dev/kmsg"), os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []byte
	record := make([]byte, 16<<10) // longer than any
	for len(all) < mostLog {
		n, err := readRecord(f, record)
		if n <= 0 || err != nil {
			break
		}
		all = append(all, record[:n]...)
	}
	return all, nil
}

// tail is the end of a file.
func tail(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	if size := info.Size(); size > mostLog {
		if _, err := f.Seek(size-mostLog, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, mostLog))
}

var busForm = regexp.MustCompile(`\b(?:([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?\b`)

// longest is how much of a line is kept.
const longest = 300

// events are the lines of a log that matter, those of one kind, number and card as one.
func events(text []byte) (out []doctor.Event) {
	for line := range bytes.Lines(text) {
		e := doctor.Event{Count: 1}
		if number, ok := xid.ErrorOf(string(line)); ok {
			e.Kind, e.Xid, e.Bus = doctor.Xid, number.Number, busOf([]byte(number.Bus))
		} else if m, _, _ := xid.MessageOf(string(line)); m != nil && slices.Contains(doctor.EventKinds, m.Kind) {
			e.Kind, e.Bus = m.Kind, busOf(line)
		} else {
			continue
		}
		e.Text = clip(line)
		out = counted(out, e)
	}
	return out
}

func counted(all []doctor.Event, e doctor.Event) []doctor.Event {
	for i := range all {
		if o := &all[i]; o.Kind == e.Kind && o.Xid == e.Xid && o.Bus == e.Bus {
			o.Count, o.Text = o.Count+1, e.Text
			return all
		}
	}
	return append(all, e)
}

// busOf is the first PCI address in a line, as sysfs writes it. Times of day, 12:34:56, are none.
func busOf(line []byte) string {
	for _, m := range busForm.FindAllSubmatch(line, -1) {
		if len(m[1]) == 0 && len(m[4]) == 0 {
			continue
		}
		domain, function := "0000", "0"
		if len(m[1]) > 0 {
			domain = strings.ToLower(string(m[1]))
		}
		if len(m[4]) > 0 {
			function = string(m[4])
		}
		return domain + ":" + strings.ToLower(string(m[2])+":"+string(m[3])) + "." + function
	}
	return ""
}

func clip(line []byte) string {
	line = bytes.TrimSpace(bytes.ToValidUTF8(line, []byte("?")))
	return strings.ToValidUTF8(string(line[:min(len(line), longest)]), "") // the cut may be within a letter
}
