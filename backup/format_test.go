package backup

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// The examples next to the tables of the formats.
func TestExamplesOfFormats(t *testing.T) {
	must.Equal(t, fmt.Sprintf("% x", encodeFormat()), "6f 72 69 62 69 72 65 70 01 00 00 00 d4 8d ee 1c", "format")
	var b bytes.Buffer
	must.Do(t, newManifestWriter(&b).end())
	must.Equal(t, fmt.Sprintf("% x", b.Bytes()[:recordHeader]), "05 00 00 00 18 00 00 00 f2 b8 be 46", "end")
	must.Equal(t, len(b.Bytes()), recordHeader+endLen)
	s := must.Get((&Backup{Number: 3, Time: time.UnixMicro(1_700_000_000_000_000), Timestamp: 5,
		Store: "000102030405060708090a0b0c0d0e0f", Bytes: 1000, NewBytes: 100,
		manifestBytes: 60, manifest: hash{1}}).encode())(t)
	must.Equal(t, hex.EncodeToString(s),
		"6f7269626962616b0100000000000000"+"0300000000000000"+"00401e18240a0600"+"0500000000000000"+
			"000102030405060708090a0b0c0d0e0f"+"e803000000000000"+"6400000000000000"+"3c00000000000000"+
			"0100000000000000000000000000000000000000000000000000000000000000"+"5a05be24", "summary")
}

// sample returns a manifest and its summary.
func sample(t testing.TB) ([]byte, *Backup) {
	var b bytes.Buffer
	m := newManifestWriter(&b)
	err := errors.Join(m.info(oribi.ImageInfo{UUID: "000102030405060708090a0b0c0d0e0f", Timestamp: 9, BlockSize: 4096,
		Epoch: 3, Mark: 1025, LogStart: 2, LogEnd: 3, Blocks: 2, BlockBytes: 300}),
		m.row([]byte("a"), nil), m.row(nil, []byte("value")),
		m.record(kindRecord, []byte("first")), m.record(kindRecord),
		m.block(oribi.ImageBlock{ID: 7, Length: 100, Sum: 5}, hash{1}),
		m.block(oribi.ImageBlock{ID: 9, Length: 200, Sum: 6}, hash{2}), m.end())
	must.Do(t, err)
	return b.Bytes(), &Backup{Number: 1, manifestBytes: m.bytes, manifest: hash(m.sum.Sum(nil))}
}

// readAll reads a manifest and returns its content as text.
func readAll(data []byte, s *Backup) (text string, err error) {
	m, err := newManifestReader("manifest", bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	text = fmt.Sprintf("%+v\n", m.info)
	if err := m.rows(func(k, v []byte) error { text += fmt.Sprintf("%q %q\n", k, v); return nil }); err != nil {
		return text, err
	}
	if err := m.records(func(p []byte) error { text += fmt.Sprintf("%q\n", p); return nil }); err != nil {
		return text, err
	}
	for {
		b, h, ok, err := m.block()
		if err != nil {
			return text, err
		}
		if !ok {
			return text, m.end(s)
		}
		text += fmt.Sprintf("%+v %x\n", b, h[:1])
	}
}

func TestManifestRoundTrip(t *testing.T) {
	data, s := sample(t)
	got, err := readAll(data, s)
	want := "{UUID:000102030405060708090a0b0c0d0e0f Timestamp:9 (1970-01-01T00:00:00.000000Z) Blocks:2 " +
		"BlockBytes:300 BlockSize:4096 Epoch:3 Mark:1025 LogStart:2 LogEnd:3}\n" +
		"\"a\" \"\"\n\"\" \"value\"\n\"first\"\n\"\"\n{ID:7 Length:100 Sum:5} 01\n{ID:9 Length:200 Sum:6} 02\n"
	must.Do(t, err)
	must.Equal(t, got, want)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		must.Fail(t, must.Err(readAll(bad, s)), fault.ErrCorrupt, "byte", i, "changed")
		must.Fail(t, must.Err(readAll(data[:i], s)), fault.ErrCorrupt, i, "bytes")
	}
	must.Fail(t, must.Err(readAll(append(bytes.Clone(data), 0), s)), fault.ErrCorrupt, "one byte more")
}

// A block is known if the earlier manifest has a block of the same ID, length, and sum. IDs that it
// does not have may be below IDs that it has.
func TestKnownBlocks(t *testing.T) {
	data, _ := sample(t)
	m := must.Get(newManifestReader("manifest", bytes.NewReader(data)))(t)
	must.Do(t, m.skipToBlocks())
	k := knownBlocks{m: m}
	for _, c := range []struct {
		b    oribi.ImageBlock
		want bool
	}{
		{oribi.ImageBlock{ID: 5, Length: 100, Sum: 5}, false},
		{oribi.ImageBlock{ID: 7, Length: 100, Sum: 5}, true},
		{oribi.ImageBlock{ID: 8, Length: 200, Sum: 6}, false},
		{oribi.ImageBlock{ID: 9, Length: 200, Sum: 7}, false},
		{oribi.ImageBlock{ID: 10, Length: 200, Sum: 6}, false},
	} {
		h, known, err := k.hash(c.b)
		if err != nil || known != c.want || known && h != (hash{1}) {
			t.Errorf("%+v: %v, %x, %v", c.b, known, h[:1], err)
		}
	}
}

// A record takes memory for the bytes that there are, whatever its length says.
func TestManifestLengthIsNotTrusted(t *testing.T) {
	head := binary.LittleEndian.AppendUint32([]byte{kindInfo, 0, 0, 0}, maxPayload)
	head = binary.LittleEndian.AppendUint32(head, coding.CRC32C(head))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := newManifestReader("manifest", bytes.NewReader(append(head, "short"...)))
	runtime.ReadMemStats(&after)
	must.Fail(t, err, fault.ErrCorrupt)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

// FuzzManifest reads manifests, summaries and formats of any bytes: each is read or ErrCorrupt.
func FuzzManifest(f *testing.F) {
	data, _ := sample(f)
	for _, n := range []int{0, recordHeader, recordHeader + infoLen, len(data) - 1, len(data)} {
		f.Add(data[:n])
	}
	f.Add(encodeFormat())
	if s, err := (&Backup{Number: 1, Store: "000102030405060708090a0b0c0d0e0f"}).encode(); err == nil {
		f.Add(s)
	}
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		if _, err := readAll(data, &Backup{}); !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("manifest: %v", err) // the SHA-256 of no input is zero
		}
		if err := checkFormat(data); err != nil && !errors.Is(err, fault.ErrCorrupt) &&
			!errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("format: %v", err)
		}
		if _, err := decodeSummary(numbered(backupsPrefix, 1), data); err != nil && !errors.Is(err, fault.ErrCorrupt) &&
			!errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("summary: %v", err)
		}
	})
}
