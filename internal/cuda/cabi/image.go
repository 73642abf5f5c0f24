package cabi

import (
	"encoding/binary"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// maxImage bounds what a program may hand over as a module, in bytes.
const maxImage = 256 << 20

// The first words of what is no text.
const (
	elfMagic     = 0x464c457f
	fatMagic     = 0xba55ed50
	wrapperMagic = 0x466243b1
)

// image reads what a program hands over as a module: PTX, which ends with a zero; or a fat binary, whose PTX is taken.
func (t *Thread) image(at uint64) ([]byte, driver.Result) {
	head, r := t.read(at, 4)
	if r != driver.Success {
		return nil, r
	}
	switch binary.LittleEndian.Uint32(head) {
	case elfMagic:
		return nil, t.refuse(driver.NoBinaryForGPU, "the module is machine code (a cubin); a simulated GPU runs PTX: hand that over, as compilers write it with -ptx or -S")
	case fatMagic:
		return t.fatBinary(at)
	case wrapperMagic:
		w, r := t.words(at, 2)
		if r != driver.Success {
			return nil, r
		}
		return t.fatBinary(w[1])
	}
	return t.text(at, maxImage)
}

// An entry of a fat binary, whose layout package fatbin tells.
const (
	fatHeader   = 16
	fatEntry    = 64
	kindPTX     = 1
	flagsPacked = 0x2000 | 0x8000 // by LZ4; by zstd
)

// fatBinary takes the PTX of the newest architecture out of a fat binary. That which can be run at all is for the driver to say.
func (t *Thread) fatBinary(at uint64) ([]byte, driver.Result) {
	const none = "the fat binary has machine code only; a simulated GPU runs PTX: compile with -gencode arch=compute_80,code=compute_80, or hand PTX over"
	head, r := t.read(at, fatHeader)
	if r != driver.Success {
		return nil, r
	}
	size := binary.LittleEndian.Uint64(head[8:])
	if size > maxImage {
		return nil, t.refuse(driver.InvalidImage, fmt.Sprintf("a fat binary of %d bytes", size))
	}
	body, r := t.read(at+uint64(binary.LittleEndian.Uint16(head[6:])), int(size))
	if r != driver.Success {
		return nil, r
	}
	var found []byte
	newest, packed := uint32(0), false
	for len(body) >= fatEntry {
		kind, header, payload := binary.LittleEndian.Uint16(body), uint64(binary.LittleEndian.Uint32(body[4:])), binary.LittleEndian.Uint64(body[8:])
		if header < fatEntry || header > uint64(len(body)) || payload > uint64(len(body))-header {
			return nil, t.refuse(driver.InvalidImage, "the fat binary is damaged: an entry goes beyond its end")
		}
		sm, flags := binary.LittleEndian.Uint32(body[28:]), binary.LittleEndian.Uint64(body[40:])
		switch {
		case kind != kindPTX:
		case flags&flagsPacked != 0:
			packed = true
		case sm >= newest:
			newest, found = sm, body[header:header+payload]
		}
		body = body[header+payload:]
	}
	switch {
	case found != nil:
		for i, c := range found {
			if c == 0 {
				return found[:i], driver.Success
			}
		}
		return found, driver.Success
	case packed:
		return nil, t.refuse(driver.NoBinaryForGPU, "the PTX in the fat binary is compressed, which is not undone here: compile with -Xfatbin --no-compress, or hand PTX over")
	}
	return nil, t.refuse(driver.NoBinaryForGPU, none)
}
