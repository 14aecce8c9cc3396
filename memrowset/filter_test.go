package memrowset

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestFilterKnowsAddedKeysAndFewOthers fills several parts of a filter.
func TestFilterKnowsAddedKeysAndFewOthers(t *testing.T) {
	key := func(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	var f keyFilter
	grown := int64(0)
	for n := 1; n <= 20_000; n++ {
		grown += f.add(hashKey(key(2 * n)))
		if n&(n-1) != 0 && n != 20_000 {
			continue
		}
		wrong := 0
		for k := range n {
			if !f.mayContain(hashKey(key(2*k + 2))) {
				t.Fatalf("of %d keys, number %d is not in the filter", n, k)
			}
			if f.mayContain(hashKey(key(2*k + 1))) {
				wrong++
			}
		}
		if wrong > n/40+2 {
			t.Errorf("%d keys: %d of as many others are taken for one of them", n, wrong)
		}
	}
	size := int64(0)
	for _, p := range *f.parts.Load() {
		size += int64(len(p.words)) * filterWordBytes
	}
	must.Equal(t, grown, size, "grown")
	must.Equal(t, len(*f.parts.Load()), 4)
}

// TestFilterBeginsWithLookupsOfNewKeys inserts rows with and without a lookup of each key before. The
// rows from before the filter are found too.
func TestFilterBeginsWithLookupsOfNewKeys(t *testing.T) {
	for _, many := range []bool{false, true} {
		for _, looked := range []bool{false, true} {
			var grown int64
			m := New(testSchema(t), func(n int64) { grown += n })
			const rows = 3 * filterLeast
			for n := 0; n < rows; n += 2 {
				keys := [][]byte{fmt.Append(nil, n*7919%rows), fmt.Append(nil, (n+1)*7919%rows)}
				if looked {
					m.Live(keys[0])
					m.Live(keys[1])
				}
				images := [][]byte{image(m, string(keys[0]), n, "x"), image(m, string(keys[1]), n+1, "x")}
				if many {
					m.InsertMany(keys, 5, 1, images)
					continue
				}
				m.Insert(keys[0], 5, 1, images[0])
				m.Insert(keys[1], 5, 1, images[1])
			}
			must.Equal(t, m.filter.exists(), looked, "lookups", looked, "many", many, "a filter exists")
			for n := range rows + 100 {
				must.Equal(t, m.Live(fmt.Append(nil, n)), n < rows,
					"lookups", looked, "many", many, "key", n, "is found")
			}
			must.Equal(t, grown, m.Bytes(), "bytes")
			m.Release()
			must.Equal(t, grown, 0, "bytes left after Release")
		}
	}
}
