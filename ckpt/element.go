package ckpt

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/tensor"
)

// codec moves elements of one dtype between files, Go slices and tensors.
type codec struct {
	decode func(b []byte) any          // the elements of a file as a []T
	make   func(n int) any             // a []T
	turn   func(v any, rows, cols int) // transpose in place of a row-major matrix
	from   func(e *tensor.Env, v any, shape []int) *tensor.Tensor
	write  func(w io.Writer, t *tensor.Tensor) error
}

var codecs = map[dtype.DType]codec{
	dtype.F32: newCodec(4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) },
		func(b []byte, v float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(v)) }),
	dtype.F64: newCodec(8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) },
		func(b []byte, v float64) { binary.LittleEndian.PutUint64(b, math.Float64bits(v)) }),
	dtype.F16: newCodec(2, func(b []byte) dtype.Float16 { return dtype.Float16(binary.LittleEndian.Uint16(b)) },
		func(b []byte, v dtype.Float16) { binary.LittleEndian.PutUint16(b, uint16(v)) }),
	dtype.BF16: newCodec(2, func(b []byte) dtype.BFloat16 { return dtype.BFloat16(binary.LittleEndian.Uint16(b)) },
		func(b []byte, v dtype.BFloat16) { binary.LittleEndian.PutUint16(b, uint16(v)) }),
	dtype.I64: newCodec(8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) },
		func(b []byte, v int64) { binary.LittleEndian.PutUint64(b, uint64(v)) }),
	dtype.I32: newCodec(4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) },
		func(b []byte, v int32) { binary.LittleEndian.PutUint32(b, uint32(v)) }),
	dtype.U8:     newCodec(1, func(b []byte) uint8 { return b[0] }, func(b []byte, v uint8) { b[0] = v }),
	dtype.F8E4M3: newCodec(1, func(b []byte) dtype.Float8E4M3 { return dtype.Float8E4M3(b[0]) }, func(b []byte, v dtype.Float8E4M3) { b[0] = byte(v) }),
	dtype.F8E5M2: newCodec(1, func(b []byte) dtype.Float8E5M2 { return dtype.Float8E5M2(b[0]) }, func(b []byte, v dtype.Float8E5M2) { b[0] = byte(v) }),
	dtype.Bool:   newCodec(1, func(b []byte) bool { return b[0] != 0 }, func(b []byte, v bool) { b[0] = truth(v) }),
}

// chunk is how many elements are converted at a time.
const chunk = 16 << 10

func truth(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func newCodec[T dtype.Element](size int, get func([]byte) T, put func([]byte, T)) codec {
	return codec{
		decode: func(b []byte) any {
			out := make([]T, len(b)/size)
			for i := range out {
				out[i] = get(b[i*size:])
			}
			return out
		},
		make: func(n int) any { return make([]T, n) },
		turn: func(v any, rows, cols int) { transpose(v.([]T), rows, cols) },
		from: func(e *tensor.Env, v any, shape []int) *tensor.Tensor { return tensor.From(e, v.([]T), shape...) },
		write: func(w io.Writer, t *tensor.Tensor) error {
			buf := make([]byte, chunk*size)
			for part := range slices.Chunk(tensor.Data[T](t), chunk) {
				for i, v := range part {
					put(buf[i*size:], v)
				}
				if _, err := w.Write(buf[:len(part)*size]); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// transpose turns the row-major matrix v[rows, cols] into [cols, rows].
func transpose[T any](v []T, rows, cols int) {
	out := make([]T, len(v))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = v[r*cols+c]
		}
	}
	copy(v, out)
}

// converts tells whether values of a file may become a tensor of another dtype: floating-point to floating-point.
func converts(from, to dtype.DType) bool {
	return from == to || from.IsFloat() && to.IsFloat()
}

// read makes a tensor of dtype dt and the given shape in e from a file's entry, which may be stored transposed. Where nothing is computed
// the file's values are not looked at.
func read(e *tensor.Env, in *safetensors.Entry, dt dtype.DType, shape []int, transposed bool) (*tensor.Tensor, error) {
	from, err := dtype.Parse(in.DType)
	if err != nil || !converts(from, dt) {
		return nil, fmt.Errorf("%s is %s, not %s", in.Name, in.DType, dt)
	}
	if !e.Device().Computes() {
		return codecs[dt].from(e, codecs[dt].make(len(in.Data())/from.Size()), shape), nil
	}
	v := codecs[from].decode(in.Data())
	if from != dt {
		wide := codecs[dt].make(len(in.Data()) / from.Size())
		if err := dtype.ConvertSlices(wide, v); err != nil {
			return nil, err
		}
		v = wide
	}
	if transposed {
		codecs[dt].turn(v, in.Shape[0], in.Shape[1])
	}
	return codecs[dt].from(e, v, shape), nil
}

// entry describes t for a file under a name. Its values are read when they are written, one tensor after another.
func entry(name string, t *tensor.Tensor, transposed bool) safetensors.Tensor {
	shape := t.Shape()
	if transposed {
		shape = []int{shape[1], shape[0]}
	}
	return safetensors.Tensor{Name: name, DType: t.DType().Safetensors(), Shape: shape, WriteData: func(w io.Writer) error {
		return guarded(func() error {
			host, err := tensor.Open("cpu")
			if err != nil {
				return err
			}
			e, turn := host.NoGrad().Scope()
			defer turn.End()
			v := t.Detach()
			if transposed {
				v = v.Transpose(0, 1)
			}
			return codecs[t.DType()].write(w, v.To(e).Contiguous())
		})
	}}
}

// readAs makes a tensor of an entry as it is.
func readAs(e *tensor.Env, in *safetensors.Entry) (*tensor.Tensor, error) {
	dt, err := dtype.Parse(in.DType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	return read(e, in, dt, in.Shape, false)
}
