// Package fatbintest makes small libraries with fat binaries, for tests.
package fatbintest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// Container is the code of one source file: targets as compilers name them (sm_80, sm_90a, compute_90), each with a payload of
// some bytes. PTX is of version 8.7 of the language, unless the name says another: compute_120@9.0.
func Container(targets ...string) []byte {
	var body []byte
	for i, t := range targets {
		body = append(body, entry(t, 24+8*i)...)
	}
	b := binary.LittleEndian.AppendUint32(nil, 0xBA55ED50)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	return append(b, body...)
}

// entry is a header and its payload. Headers of newer architectures are longer, as nvcc makes them.
func entry(target string, payload int) []byte {
	kind, sm, flags, major, minor := uint16(2), uint32(0), uint64(0x8011), uint16(1), uint16(8)
	name, version, _ := strings.Cut(target, "@")
	name, ptx := strings.CutPrefix(name, "compute_")
	if ptx {
		kind, major, minor = 1, 8, 7
	}
	if version != "" {
		major, minor = uint16(version[0]-'0'), uint16(version[2]-'0')
	}
	name = strings.TrimPrefix(name, "sm_")
	if strings.HasSuffix(name, "a") {
		flags |= 0x100000
	}
	for _, d := range strings.TrimSuffix(name, "a") {
		sm = 10*sm + uint32(d-'0')
	}
	long := 64
	if sm >= 100 {
		long = 112
	}
	h := make([]byte, long+payload)
	binary.LittleEndian.PutUint16(h[0:], kind)
	binary.LittleEndian.PutUint16(h[2:], 0x101)
	binary.LittleEndian.PutUint32(h[4:], uint32(long))
	binary.LittleEndian.PutUint64(h[8:], uint64(payload))
	binary.LittleEndian.PutUint16(h[24:], minor)
	binary.LittleEndian.PutUint16(h[26:], major)
	binary.LittleEndian.PutUint32(h[28:], sm)
	binary.LittleEndian.PutUint64(h[40:], flags)
	for i := long; i < len(h); i++ {
		h[i] = 0xEE
	}
	return h
}

// ELF is a library with one section of containers.
func ELF(section string, containers ...[]byte) []byte {
	body := bytes.Join(containers, nil)
	strtab := []byte("\x00" + section + "\x00.shstrtab\x00")
	const header = 64
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	le := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	le([]uint16{3, 62}) // a shared library for x86-64
	le(uint32(1))
	le([]uint64{0, 0, uint64(header + len(body) + len(strtab))})
	le(uint32(0))
	le([]uint16{header, 56, 0, 64, 3, 2})
	b.Write(body)
	b.Write(strtab)
	b.Write(make([]byte, 64))
	sectionHeader := func(name, kind uint32, at, long int) {
		le([]uint32{name, kind})
		le([]uint64{0, 0, uint64(at), uint64(long)})
		le([]uint32{0, 0})
		le([]uint64{8, 0})
	}
	sectionHeader(1, 1, header, len(body))
	sectionHeader(uint32(2+len(section)), 3, header+len(body), len(strtab))
	return b.Bytes()
}

// PE is a DLL with one section of containers, whose name is cut to 8 bytes, as in the format.
func PE(section string, containers ...[]byte) []byte {
	body := bytes.Join(containers, nil)
	dos := make([]byte, 64)
	copy(dos, "MZ")
	binary.LittleEndian.PutUint32(dos[0x3c:], 64)
	coff := slices.Concat([]byte("PE\x00\x00"), make([]byte, 20))
	binary.LittleEndian.PutUint16(coff[4:], 0x8664)
	binary.LittleEndian.PutUint16(coff[6:], 1)
	head := make([]byte, 40)
	copy(head, section[:min(8, len(section))])
	at := len(dos) + len(coff) + len(head)
	binary.LittleEndian.PutUint32(head[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[16:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[20:], uint32(at))
	return slices.Concat(dos, coff, head, body)
}
