// Package tfevents writes scalars as TensorBoard reads them: records of TFRecord framing (length and data, each with a masked CRC-32C),
// each a message tensorflow.Event of tensorflow/core/util/event.proto.
package tfevents

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// Writer writes a stream of events. It may be used by one goroutine at a time.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter writes the version of the format, with which every file begins.
func NewWriter(w io.Writer, now time.Time) (*Writer, error) {
	t := &Writer{w: w}
	return t, t.record(text(wallTime(nil, now), 3, "brain.Event:2"))
}

// Scalar writes one number of a step under a tag such as "loss/train".
func (t *Writer) Scalar(now time.Time, step int, tag string, v float64) error {
	value := binary.LittleEndian.AppendUint32(append(text(nil, 1, tag), 2<<3|5), math.Float32bits(float32(v)))
	event := binary.AppendUvarint(append(wallTime(nil, now), 2<<3), uint64(step))
	return t.record(text(event, 5, string(text(nil, 1, string(value)))))
}

// wallTime is field 1: seconds since 1970.
func wallTime(b []byte, now time.Time) []byte {
	return binary.LittleEndian.AppendUint64(append(b, 1<<3|1), math.Float64bits(float64(now.UnixMicro())/1e6))
}

// text is a field of bytes.
func text(b []byte, field byte, s string) []byte {
	return append(binary.AppendUvarint(append(b, field<<3|2), uint64(len(s))), s...)
}

func (t *Writer) record(data []byte) error {
	b := binary.LittleEndian.AppendUint64(t.buf[:0], uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	t.buf = binary.LittleEndian.AppendUint32(b, masked(data))
	_, err := t.w.Write(t.buf)
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
