package cuda

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestTicketsSuffice: work that is cut into ranges has at most a ticket for each column of blocks that there is.
func TestTicketsSuffice(t *testing.T) {
	r := testutil.Rand(t)
	for range 10000 {
		n, tiles, least := 1+r.IntN(1<<r.IntN(30)), 1+r.IntN(1<<r.IntN(12)), 1+r.IntN(256)
		perRange, ranges := rangesOf(n, tiles, least)
		if ranges > 1 && tiles > maxTickets || perRange*ranges < n || perRange*(ranges-1) >= n {
			t.Fatalf("%d terms of %d tiles are %d ranges of %d, and there are %d tickets", n, tiles, ranges, perRange, maxTickets)
		}
	}
}
