package csvin

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// readBlocks formats fitted records of n fields, some of them from blocks unless random is nil.
func readBlocks(r *Reader, random *rand.Rand, n int) (text string, inBlocks int) {
	var b strings.Builder
	for {
		block, taken := &Block{}, 0
		if random != nil {
			block = r.Block(n, 1+random.IntN(4))
			taken = random.IntN(len(block.Ends) + 1)
		}
		for i := range taken {
			fmt.Fprintf(&b, "%d:", r.Line+i)
			for _, s := range block.Fields[i*n : (i+1)*n] {
				fmt.Fprintf(&b, " %q %t", block.Text[s.From:s.To], block.Quoted(s))
			}
			b.WriteByte('\n')
		}
		r.Take(taken)
		inBlocks += taken
		if taken > 0 && random.IntN(2) == 0 {
			continue
		}
		err := r.Next()
		if err == io.EOF {
			return b.String(), inBlocks
		}
		fmt.Fprintf(&b, "%d:", r.Line)
		if err != nil {
			fmt.Fprintf(&b, " %v\n", err)
			if err == ErrUTF16 {
				return b.String(), inBlocks
			}
			continue
		}
		for _, f := range r.Fit(n) {
			fmt.Fprintf(&b, " %q %t", f.Text, f.Quoted)
		}
		b.WriteByte('\n')
	}
}

func agreeInBlocks(text string, random *rand.Rand) (inBlocks int, err error) {
	for n := 1; n < 4; n++ {
		r := newReader(strings.NewReader(text), ',', 512)
		if random.IntN(3) == 0 {
			r = newReader(iotest.HalfReader(strings.NewReader(text)), ',', 1<<random.IntN(7))
		}
		got, taken := readBlocks(r, random, n)
		want, _ := readBlocks(newReader(strings.NewReader(text), ',', 512), nil, n)
		if got != want {
			return 0, fmt.Errorf("%q with %d fields: got\n%s\nwant\n%s", text, n, got, want)
		}
		inBlocks += taken
	}
	return inBlocks, nil
}

// randomRecords returns records of at most three fields, most of them well-formed.
func randomRecords(r *rand.Rand) string {
	fields := []string{"", "a", "bcdefghij", "é", `""`, `"x"`, `"y,z"`, `"a""b"`, "\"a\nb\"", "\"a\rb\"", "\"", "a\rb"}
	var b strings.Builder
	for range r.IntN(8) {
		for range r.IntN(3) {
			b.WriteString(fields[r.IntN(min(len(fields), 5+r.IntN(20)))] + ",")
		}
		b.WriteString(fields[r.IntN(7)] + []string{"\n", "\r\n"}[r.IntN(2)])
	}
	return b.String()
}

// Records in blocks are those that Next reads.
func TestBlocksHaveTheRecordsOfNext(t *testing.T) {
	random := seedtest.Rand(t)
	inBlocks := 0
	for i := range 20_000 {
		text := randomText(random)
		if i%2 == 0 {
			text = randomRecords(random) + text
		}
		n := must.Get(agreeInBlocks(text, random))(t)
		inBlocks += n
	}
	if inBlocks < 10_000 {
		t.Errorf("%d records in blocks: the test sees little", inBlocks)
	}
}
