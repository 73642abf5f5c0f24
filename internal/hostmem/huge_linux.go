package hostmem

import "golang.org/x/sys/unix"

// hugePage is what a large page has on amd64 and, with pages of 4 KiB, on arm64. Where it is another, the advice is
// of no use and does no harm.
const hugePage = 2 << 20

// mapAnonymous maps n bytes. Large blocks begin at a multiple of hugePage and ask for such pages: touching them the first
// time takes a hundredth of the faults, and reading across them fewer misses of the TLB.
func mapAnonymous(n int) (uintptr, error) {
	if n < hugePage {
		return mapPages(n)
	}
	all, err := mapPages(n + hugePage)
	if err != nil {
		return mapPages(n)
	}
	addr := (all + hugePage - 1) &^ (hugePage - 1)
	before := int(addr - all)
	// What is cut off is ours and whole pages; the system has no reason to refuse, nor to refuse the advice but by its
	// settings, and then pages are small.
	if before > 0 {
		_ = unmapAnonymous(all, before)
	}
	_ = unmapAnonymous(addr+uintptr(n), hugePage-before)
	_ = unix.Madvise(Bytes(addr, n), unix.MADV_HUGEPAGE)
	return addr, nil
}
