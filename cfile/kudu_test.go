package cfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// kuduCase is one combination of options.
type kuduCase struct {
	o    WriterOptions
	zone bool
}

func (c *kuduCase) String() string {
	return fmt.Sprintf("type=%v/enc=%v/codec=%v/nullable=%v/zonemap=%v", c.o.Type, c.o.Encoding,
		c.o.Compression, c.o.Nullable, c.zone)
}

// kuduCases returns all combinations of type, encoding and codec, nullable and not, with and
// without zone map.
func kuduCases() (all []kuduCase) {
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			for _, codec := range []schema.Compression{schema.NoCompression, schema.Snappy, schema.LZ4,
				schema.Zlib, schema.LZ4HC, schema.Dense} {
				for k := range 4 {
					o := WriterOptions{Type: typ, Encoding: enc, Compression: codec, Nullable: k&1 != 0,
						PositionalIndex: true, Exact: k&2 != 0}
					all = append(all, kuduCase{o, !o.Exact})
				}
			}
		}
	}
	return all
}

// Kudu's own binary reads files that Writer wrote and prints the same rows. Each file takes several
// tenths of a second, so the test draws three, among them one with LZ4HC and one with Dense;
// ORIBI_KUDU=12 draws twelve, ORIBI_KUDU=all draws all.
func TestKuduReadsWrittenFiles(t *testing.T) {
	dump := kuduDump(t)
	seed := seedtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	cases := kuduCases()
	rng.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	hard := slices.IndexFunc(cases, func(c kuduCase) bool {
		return c.o.Compression == schema.LZ4HC && c.o.Type.Variable()
	})
	dense := slices.IndexFunc(cases, func(c kuduCase) bool {
		return c.o.Compression == schema.Dense && c.o.Encoding == schema.Prefix
	})
	cases[0], cases[hard] = cases[hard], cases[0]
	if dense == 0 {
		dense = hard
	}
	cases[1], cases[dense] = cases[dense], cases[1]
	n := 3
	if text := os.Getenv(corpustest.KuduVariable); text == "all" {
		n = len(cases)
	} else if k, err := strconv.Atoi(text); err == nil {
		n = min(k, len(cases))
	}
	var wg sync.WaitGroup
	next := make(chan kuduCase)
	for range 2 {
		wg.Go(func() {
			for c := range next {
				if err := kuduReads(t, dump, seed, c); err != nil {
					t.Errorf("%v: %v", &c, err)
				}
			}
		})
	}
	for _, c := range cases[:n] {
		next <- c
	}
	close(next)
	wg.Wait()
	t.Logf("%d of %d combinations", n, len(cases))
}

// kuduDump returns the command with which Kudu prints a file. It skips the test if Kudu is not
// available.
func kuduDump(t *testing.T) string {
	dir := filepath.Join(corpustest.Dir(t), "tools", "kudu")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, filepath.Join(dir, "install")).CombinedOutput(); err != nil {
		t.Skipf("Kudu cannot be installed here: %v: %s", err, out)
	}
	return filepath.Join(dir, "dump-cfile")
}

// kuduReads writes a file and compares it with Kudu's output.
func kuduReads(t *testing.T, dump string, seed uint64, c kuduCase) error {
	name := c.String()
	rng := rand.New(rand.NewPCG(seed,
		uint64(len(name))+uint64(c.o.Type)<<8+uint64(c.o.Encoding)<<16+uint64(c.o.Compression)<<24))
	c.o.BlockBytes = []int{0, 512, 2000}[rng.IntN(3)]
	c.o.IndexBlockBytes = []int{0, 100}[rng.IntN(2)]
	cells := kuduCells(rng, c.o.Type, 1+rng.IntN(1500), c.o.Nullable)
	src := writeSteps(t, rng, c.o, cells)
	if got := open(t, src, nil).Info().ZoneMap; got != c.zone {
		return fmt.Errorf("zone map %v", got)
	}
	return kuduPrints(t, dump, src.Bytes, c.o.Type, cells)
}

// kuduPrints compares Kudu's output for a file with its cells.
func kuduPrints(t *testing.T, dump string, file []byte, typ schema.Type, cells [][]byte) error {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return err
	}
	out, err := exec.Command(dump, "--rows", path).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return err
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	want := make([]string, len(cells))
	for i, cell := range cells {
		want[i] = kuduText(typ, cell)
	}
	if slices.Equal(got, want) {
		return nil
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("row %d is printed as %s, want %s", i, got[i], want[i])
		}
	}
	return fmt.Errorf("%d rows printed, want %d", len(got), len(want))
}

// kuduCells returns cells that Kudu prints without loss, including dates and times in its range of
// years.
func kuduCells(rng *rand.Rand, typ schema.Type, n int, nullable bool) [][]byte {
	share := 0.0
	if nullable {
		share = 0.3
	}
	cells := randomCells(rng, typ, n, share)
	for i, c := range cells {
		if c == nil {
			continue
		}
		switch typ {
		case schema.Date:
			c = binary.LittleEndian.AppendUint32(nil, uint32(rng.Int32N(2932896+719162+1)-719162))
		case schema.Timestamp:
			c = binary.LittleEndian.AppendUint64(nil, uint64(rng.Int64N(4e15)-2e15))
		case schema.String, schema.Varchar:
			c = []byte(strings.ToValidUTF8(string(c), "?"))
		case schema.Int128, schema.Decimal128:
			// Kudu prints such numbers in two parts and drops leading zeros of the second.
			if strings.Contains(kuduText(schema.Int128, c), "0") {
				c = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil,
					uint64(int64(c[0])-128)), uint64((int64(c[0])-128)>>63))
			}
		}
		cells[i] = c
	}
	return cells
}

// kuduText returns a cell as Kudu prints it.
func kuduText(typ schema.Type, cell []byte) string {
	if cell == nil {
		return "NULL"
	}
	be := slices.Clone(cell)
	slices.Reverse(be)
	n := new(big.Int).SetBytes(be)
	signed := func() *big.Int {
		if be[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(be))))
		}
		return n
	}
	switch typ {
	case schema.Bool:
		return strconv.FormatBool(cell[0] != 0)
	case schema.Float:
		return kuduFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(cell))), 32)
	case schema.Double:
		return kuduFloat(math.Float64frombits(binary.LittleEndian.Uint64(cell)), 64)
	case schema.String, schema.Binary, schema.Varchar:
		return kuduString(typ, cell)
	case schema.Date:
		d := time.Unix(86400*signed().Int64(), 0).UTC()
		return fmt.Sprintf("%d-%02d-%02d", d.Year(), d.Month(), d.Day())
	case schema.Timestamp:
		return time.UnixMicro(signed().Int64()).UTC().Format("2006-01-02T15:04:05.000000Z")
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		return fmt.Sprintf("%v_D%d", signed(), 8*len(cell))
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		return n.String()
	}
	return signed().String()
}

// kuduFloat formats like printf's %g with the digits that every number preserves, or two more if
// that is not exact.
func kuduFloat(f float64, bits int) string {
	few, enough := 15, 17
	if bits == 32 {
		few, enough = 6, 8
	}
	switch {
	case f != f && math.Signbit(f):
		return "-nan"
	case f != f:
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+"))
	}
	text := fmt.Sprintf("%.*g", few, f)
	if again, err := strconv.ParseFloat(text, bits); err != nil || again != f {
		text = fmt.Sprintf("%.*g", enough, f)
	}
	return text
}

// kuduString returns a C string literal with octal escapes, or hexadecimal ones for BINARY. A
// character after a hexadecimal escape that could be read as part of it is escaped too.
func kuduString(typ schema.Type, cell []byte) string {
	var b strings.Builder
	b.WriteByte('"')
	hex := false
	for _, c := range cell {
		wasHex := hex
		hex = typ == schema.Binary && (c < ' ' || c > '~') && !strings.ContainsRune("\n\r\t", rune(c)) ||
			wasHex && strings.IndexByte("0123456789abcdefABCDEF", c) >= 0
		switch {
		case hex:
			fmt.Fprintf(&b, `\x%02x`, c)
		case strings.IndexByte("\"'\\", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
