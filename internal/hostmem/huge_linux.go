package hostmem

import "golang.org/x/sys/unix"

// mapAnonymous maps n bytes. Large blocks begin at a multiple of LargePage and ask for such pages: touching them the first
// time takes a hundredth of the faults, and reading across them fewer misses of the TLB. Where a large page is another size, the
// advice is of no use and does no harm.
func mapAnonymous(n int) (uintptr, error) {
	if n < LargePage {
		return mapPages(n)
	}
	all, err := mapPages(n + LargePage)
	if err != nil {
		return mapPages(n)
	}
	addr := (all + LargePage - 1) &^ (LargePage - 1)
	before := int(addr - all)
	// What is cut off is ours and whole pages; the system has no reason to refuse, nor to refuse the advice but by its
	// settings, and then pages are small.
	if before > 0 {
		_ = unmapAnonymous(all, before)
	}
	_ = unmapAnonymous(addr+uintptr(n), LargePage-before)
	_ = unix.Madvise(Bytes(addr, n), unix.MADV_HUGEPAGE)
	return addr, nil
}
