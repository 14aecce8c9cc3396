package carbondata

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

func TestGoldenVerify(t *testing.T) {
	goldenFolders(t, func(t *testing.T, g goldenFolder, dir string) {
		table := must.Get(Open(dir))(t)
		defer table.Close()
		must.Do(t, table.Verify(context.Background()))
	})
}

// verifyFile verifies a data file alone.
func verifyFile(data []byte) error {
	f, err := OpenFile(&block.Memory{Bytes: data})
	if err != nil {
		return err
	}
	v := verifier{file: f}
	return v.verify(context.Background())
}

func verifyPath(path string) error {
	table, err := Open(path)
	if err != nil {
		return err
	}
	defer table.Close()
	return table.Verify(context.Background())
}

// editFooter changes the footer of a data file.
func editFooter(t *testing.T, data []byte, edit func(footer anyStruct)) []byte {
	at := binary.BigEndian.Uint64(data[len(data)-pointerLen:])
	footer := editMessages(t, data[at:len(data)-pointerLen], func(list []anyStruct) { edit(list[0]) })
	return binary.BigEndian.AppendUint64(slices.Concat(data[:at], footer), at)
}

// boundsOf returns the lists of minima, maxima, and flags of a blocklet in a footer.
func boundsOf(footer anyStruct, blocklet int) (lo, hi, present []any) {
	b := footer[footerIndexes].(anyList).elements[blocklet].(anyStruct)[indexBounds].(anyStruct)
	return b[boundsMin].(anyList).elements, b[boundsMax].(anyList).elements, b[boundsPresent].(anyList).elements
}

// TestVerifyFindsWrongFooters changes facts of the footer that reading the rows does not need. The
// file has the columns name STRING, note VARCHAR, n LONG, and others.
func TestVerifyFindsWrongFooters(t *testing.T) {
	data := goldenFile(t, "primitives-pages")
	f := openBytes(t, data)
	place := func(name string) int {
		i := slices.IndexFunc(f.columns, func(c Column) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("no column %q", name)
		}
		return f.columns[i].first
	}
	must.Do(t, verifyFile(editFooter(t, data, func(anyStruct) {})))
	for name, c := range map[string]struct {
		column string
		change func(lo, hi *[]byte, present *any)
		want   string
	}{
		"a minimum greater than a null": {"s", func(lo, _ *[]byte, _ *any) {
			*lo = []byte("a")
		}, `null is not in the bounds, "a" to`},
		"a maximum less than a value": {"s", func(_, hi *[]byte, _ *any) {
			*hi = []byte("b")
		}, `is not in the bounds`},
		"a minimum that no value has": {"s", func(lo, _ *[]byte, _ *any) {
			*lo = []byte("+")
		}, `the minimum is "+"`},
		"a maximum that no value has": {"s", func(_, hi *[]byte, _ *any) {
			*hi = []byte("zzz")
		}, `the maximum is "zzz"`},
		"a minimum greater than a maximum": {"s", func(lo, hi *[]byte, _ *any) {
			*lo, *hi = *hi, *lo
		}, `greater than the maximum`},
		"an integer of four bytes": {"id", func(lo, _ *[]byte, _ *any) { *lo = (*lo)[4:] }, "of INT"},
		"another integer":          {"id", func(_, hi *[]byte, _ *any) { (*hi)[7]++ }, "the maximum is"},
		"another day":              {"day", func(lo, _ *[]byte, _ *any) { (*lo)[3] = 0 }, "the minimum is"},
		"another time":             {"at", func(_, hi *[]byte, _ *any) { (*hi)[7]++ }, "the maximum is"},
		"another double":           {"f64", func(_, hi *[]byte, _ *any) { (*hi)[7]++ }, "the maximum is"},
		"another decimal":          {"dec", func(_, hi *[]byte, _ *any) { (*hi)[len(*hi)-1]++ }, "the maximum is"},
		"another flag":             {"flag", func(_, hi *[]byte, _ *any) { (*hi)[0] = 0 }, "is not in the bounds"},
		"bounds that do not count": {"s", func(lo, _ *[]byte, present *any) { *lo, *present = []byte("a"), false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := place(c.column)
			err := verifyFile(editFooter(t, data, func(footer anyStruct) {
				lo, hi, present := boundsOf(footer, 0)
				first, last := bytes.Clone(lo[i].([]byte)), bytes.Clone(hi[i].([]byte))
				c.change(&first, &last, &present[i])
				lo[i], hi[i] = first, last
			}))
			if c.want == "" {
				must.Do(t, err)
				return
			}
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), `blocklet 0: column "`+c.column+`"`) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestVerifyFindsWrongOrder says of files whose rows are not sorted that they are.
func TestVerifyFindsWrongOrder(t *testing.T) {
	for _, folder := range []string{"sort-noscope", "sort-default"} {
		err := verifyFile(editFooter(t, goldenFile(t, folder), func(footer anyStruct) { footer[footerSorted] = true }))
		must.Fail(t, err, ErrCorrupt, folder)
		must.Contain(t, fmt.Sprint(err), "said to be sorted", folder)
	}
}

// TestVerifyFindsWrongPageBounds changes the bounds of each page of a column.
func TestVerifyFindsWrongPageBounds(t *testing.T) {
	data := goldenFile(t, "primitives-pages")
	f := openBytes(t, data)
	b := &f.blocklets[0]
	for i, at := range b.offsets {
		col := &f.columns[i]
		head := data[at : at+int64(b.lengths[i])]
		c := must.Get(parseChunk(head, at+int64(len(head)), b.end(i, f.dimensions), b.pages))(t)
		for p := range c.pages {
			lo, _, present := c.pages[p].bounds.of(0)
			if !present || len(lo) == 0 || col.Type == Float || col.Type == Double {
				continue
			}
			from := 0 // lo is in head
			for &head[from] != &lo[0] {
				from++
			}
			changed := bytes.Clone(data)
			changed[int(at)+from+len(lo)-1] ^= 1
			err := verifyFile(changed)
			must.Fail(t, err, ErrCorrupt, col.Name, p)
			must.Contain(t, fmt.Sprint(err), `column "`+col.Name+`"`, col.Name, p)
		}
	}
}

// TestVerifyFindsUnusedWords changes bytes of pages until a word of the dictionary is in none of
// them.
func TestVerifyFindsUnusedWords(t *testing.T) {
	data := goldenFile(t, "varchar-dict")
	f := openBytes(t, data)
	b := &f.blocklets[0]
	for i := range b.offsets {
		c := must.Get(f.readChunk(b, i, &memory{left: 1 << 20}))(t)
		if c.dictionary == nil {
			continue
		}
		h := &c.pages[0]
		for at := h.offset; at < h.offset+int64(h.data); at++ {
			changed := bytes.Clone(data)
			changed[at] ^= 1
			if err := verifyFile(changed); err != nil && strings.Contains(err.Error(), "is in no page") {
				return
			}
		}
	}
	t.Error("no change was found")
}

// TestVerifyComparesIndexFiles changes the bounds, the flag, and the columns of index files.
func TestVerifyComparesIndexFiles(t *testing.T) {
	for name, edit := range map[string]func(list []anyStruct){
		"nothing": func([]anyStruct) {},
		"a minimum": func(list []anyStruct) {
			lo := list[1][entryBounds].(anyStruct)[indexBounds].(anyStruct)[boundsMin].(anyList).elements
			lo[0] = append(lo[0].([]byte), 'x')
		},
		"a flag of bounds": func(list []anyStruct) {
			present := list[1][entryBounds].(anyStruct)[indexBounds].(anyStruct)[boundsPresent].(anyList).elements
			present[0] = false
		},
		"no bounds":         func(list []anyStruct) { list[1][entryBounds] = anyStruct{} },
		"sorted":            func(list []anyStruct) { list[0][indexSorted] = true },
		"one column fewer":  func(list []anyStruct) { dropColumn(list[0]) },
		"two entries":       func(list []anyStruct) { list[1][entryName] = append(list[1][entryName].([]byte), 'x') },
		"rows of a file":    func(list []anyStruct) { list[1][entryRows] = i64(list[1][entryRows].(anyInt).v + 1) },
		"size of a file":    func(list []anyStruct) { list[1][entrySize] = i64(list[1][entrySize].(anyInt).v + 1) },
		"place of a footer": func(list []anyStruct) { list[1][entryFooter] = i64(list[1][entryFooter].(anyInt).v + 1) },
	} {
		dir := copyFolder(t, "primitives-pages")
		editFile(t, filepath.Join(dir, "*"+indexSuffix), func(b []byte) []byte { return editMessages(t, b, edit) })
		if err := verifyPath(dir); (err == nil) != (name == "nothing") || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Log(err)
		}
	}
}

func dropColumn(header anyStruct) {
	columns := header[indexColumns].(anyList)
	columns.elements = columns.elements[1:]
	header[indexColumns] = columns
}

// TestVerifyOfChangedFolders changes single bytes: Verify and Info return nil or an error of the
// two kinds.
func TestVerifyOfChangedFolders(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	rounds := seedtest.Rounds(120, 24)
	for _, folder := range []string{"one-row", "primitives-nodict", "sort-three", "string-dict", "sort-types-inverted",
		"varchar-dict", "map", "decimal-narrow", "sdk-1.4.1-sorted", "table"} {
		dir := copyFolder(t, folder)
		var paths []string
		for _, pattern := range []string{"*.carbon*", "db/t/Fact/Part0/*/*.carbon*",
			"db/t/Metadata/*", "db/t/Metadata/segments/*"} {
			more := must.Get(filepath.Glob(filepath.Join(dir, pattern)))(t)
			paths = append(paths, more...)
		}
		problems := 0
		for range rounds {
			path := paths[r.IntN(len(paths))]
			good, err := os.ReadFile(path)
			if err != nil || len(good) == 0 {
				continue // a folder
			}
			changed := bytes.Clone(good)
			changed[r.IntN(len(changed))] ^= 1 << r.IntN(8)
			must.Do(t, os.WriteFile(path, changed, 0o644))
			if table, err := Open(dir); err != nil {
				problems++
			} else {
				_, err := table.Info()
				typed(t, err)
				if !typed(t, table.Verify(context.Background())) {
					problems++
				}
				table.Close()
			}
			must.Do(t, os.WriteFile(path, good, 0o644))
		}
		if problems < rounds/8 {
			t.Errorf("%s: only %d of %d changes were found", folder, problems, rounds)
		}
		t.Logf("%s: %d of %d changes were found", folder, problems, rounds)
	}
}

// TestBoundsOfRoundedValues checks values of floating codecs, which can be outside of the bounds by
// what the codec rounds.
func TestBoundsOfRoundedValues(t *testing.T) {
	for _, c := range []struct {
		tolerance float64
		v, lo, hi any
		want      bool
	}{
		{0, 4.33, 4.34, 5.0, false},
		{0.02, 4.33, 4.34, 5.0, true},
		{0.02, 4.31, 4.34, 5.0, false},
		{0.02, 5.01, 4.34, 5.0, true},
		{0.02, 5.03, 4.34, 5.0, false},
		{0, float32(4.33), float32(4.34), float32(5), false},
		{0.02, float32(4.33), float32(4.34), float32(5), true},
		{0.02, float32(5.03), float32(4.34), float32(5), false},
		{0.02, float32(500000.1), float32(0), float32(500000), true}, // a product of 24 bits
	} {
		s := seenBounds{min: c.v, max: c.v, tolerance: c.tolerance}
		must.Equal(t, s.within(c.lo, c.hi), c.want, c.v, c.tolerance, c.lo, c.hi)
	}
}

// TestOrdersOfNulls checks both orders of a STRING that is null: before all others, and as the text
// that is stored for it.
func TestOrdersOfNulls(t *testing.T) {
	for _, c := range []struct {
		values []any
		good   bool
	}{
		{[]any{nil, nil, "0", "a"}, true},
		{[]any{"0", nil, nil, "a"}, true},
		{[]any{"0", "a"}, true},
		{[]any{nil, "0", nil, "a"}, false},
		{[]any{"a", nil}, false},
		{[]any{"b", "a"}, false},
	} {
		v := verifier{file: &File{columns: []Column{{Name: "s", Type: String}}}, keys: []int{0}, orders: nullOrders()}
		var err error
		for _, value := range c.values {
			if err == nil {
				err = v.checkOrder([]any{value})
			}
		}
		must.Equal(t, err == nil, c.good, c.values, err)
	}
}
