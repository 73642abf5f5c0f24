// Package rng draws random numbers from counters: a number is a pure function of a
// key and an index, so that any part of a tensor can be filled by anyone, in any
// order, with the same result.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC11), which engines on other devices can repeat.
// A block is one evaluation: 128 bits from a 64-bit key and a 128-bit counter. The
// counter's lower half is the block's index; its third word tells the uses of a key
// apart (elements, derived keys, streams), which hence never meet.
//
// What turns bits into numbers is made of float64 operations that IEEE 754 defines
// to the last bit, none of them fused, so that all machines agree.
package rng

// Key selects one of 2⁶⁴ independent sequences.
type Key uint64

// The third counter word.
const (
	forElements = iota
	forKeys
	forStreams
)

// philox is the bijection Philox4x32-10 of counter c0..c3 under key k0, k1.
func philox(c0, c1, c2, c3, k0, k1 uint32) (r0, r1, r2, r3 uint32) {
	for range 10 {
		p := uint64(c0) * 0xd2511f53
		q := uint64(c2) * 0xcd9e8d57
		c0, c1, c2, c3 = uint32(q>>32)^c1^k0, uint32(q), uint32(p>>32)^c3^k1, uint32(p)
		k0 += 0x9e3779b9
		k1 += 0xbb67ae85
	}
	return c0, c1, c2, c3
}

// block returns the block of key with the given index and use.
func (key Key) block(index uint64, use uint32) (r0, r1, r2, r3 uint32) {
	return philox(uint32(index), uint32(index>>32), use, 0, uint32(key), uint32(key>>32))
}

// Uint32x4 returns block number counter of key, the bits behind elements.
func Uint32x4(key Key, counter uint64) [4]uint32 {
	r0, r1, r2, r3 := key.block(counter, forElements)
	return [4]uint32{r0, r1, r2, r3}
}

// Fold derives the key of branch index from key: the first 64 bits of a Philox
// block of key that serves no other purpose. For a fixed key no pattern of
// indices is worse than another, and the order of folding matters: a path of
// indices (seed, epoch, batch, …) has its own key. The function is part of the
// format of runs and checkpoints and never changes.
func Fold(key Key, index uint64) Key {
	r0, r1, _, _ := key.block(index, forKeys)
	return Key(join(r0, r1))
}

func join(low, high uint32) uint64 { return uint64(high)<<32 | uint64(low) }
