package carbondata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
)

// rawPage is a page before compression, with the fields of its header.
type rawPage struct {
	rows         int
	nulls        []byte
	encoders     []encoding
	meta         []byte // nil: none
	data         []byte
	uncompressed int // bytes, as the SDK counts them
	rowIDs, runs []byte
	sort         int  // sort_state; -1: not set
	adaptive     bool // the SDK sets the length of row IDs, to 0
	values       valueRange
}

const sortNone = -1 // sort_state is not set

// encodePage encodes the page that is filled.
func (c *columnWriter) encodePage() (err error) {
	raw := c.rawPage()
	c.values = raw.values
	c.next, err = c.compress(raw)
	return err
}

// takePage adds the encoded page to the blocklet, and begins the next page. If it is the first
// without surrogates, the others lose theirs when the blocklet ends.
func (c *columnWriter) takePage() {
	if len(c.pages) == 0 {
		c.hasDict = c.isCoded()
	}
	c.hasDict = c.hasDict && c.isCoded()
	for _, code := range c.codes {
		c.dict.use(code)
	}
	if c.hasDict {
		c.coded += int64(c.plain)
	}
	c.pages = append(c.pages, c.next)
	c.bounds.add(c.values)
	c.next, c.values = encodedPage{}, valueRange{}
	c.reset()
}

// endBlocklet begins the next blocklet.
func (c *columnWriter) endBlocklet() {
	clear(c.pages)
	c.pages, c.bounds, c.coded = c.pages[:0], valueRange{}, 0
	if c.dict != nil {
		c.dict.used = nil
	}
}

// rawPage encodes the values of the page. Source: carbondata spec §7.
func (c *columnWriter) rawPage() rawPage {
	p := rawPage{rows: c.rows, nulls: bytes.TrimRight(c.nulls, "\x00"), sort: sortNone, values: c.pageRange()}
	switch c.form {
	case formNumbers:
		c.encodeNumbers(&p)
	case formDates:
		p.encoders, p.sort = []encoding{encDictionary, encRLE}, sortNative
		for _, v := range c.ints {
			p.data = binary.BigEndian.AppendUint32(p.data, uint32(v))
		}
		p.uncompressed = len(p.data)
	case formElements:
		at := uint32(0)
		for _, n := range c.ints {
			first := at
			if n == 0 {
				first = 0 // as the SDK
			}
			p.data = binary.BigEndian.AppendUint32(p.data, uint32(n))
			p.data = binary.BigEndian.AppendUint32(p.data, first)
			at += uint32(n)
		}
		c.setNested(&p)
	case formFields:
		for range c.rows {
			p.data = binary.BigEndian.AppendUint16(p.data, uint16(len(c.children)))
		}
		c.setNested(&p)
	default:
		c.encodeText(&p)
	}
	if c.nested || len(c.children) > 0 {
		p.encoders = append(p.encoders, encIntLengthChild)
	}
	return p
}

// setNested completes a page of a complex column, or of bytes in one.
func (c *columnWriter) setNested(p *rawPage) {
	p.encoders = []encoding{encDirectCompress}
	p.meta = c.appendMeta(nil, inByteArray, inByteArray, c.kind, 0, nil)
	p.uncompressed = len(p.data)
}

func (c *columnWriter) encodeNumbers(p *rawPage) {
	var e encodedNumbers
	switch {
	case c.Type == Float || c.Type == Double:
		e = c.encodeFloats(p.values)
	case c.isWide():
		e = c.encodeWides()
	default:
		e = c.encodeInts(p.values)
	}
	p.data, p.encoders, p.adaptive = e.data, []encoding{e.encoding}, e.encoding != encDirectCompress
	p.uncompressed = c.rows * numberTypes[c.Type].width() // 0 of DECIMAL
	if c.isWide() {
		p.uncompressed = len(p.data)
	}
	p.meta = c.appendMeta(nil, numberTypes[c.Type], e.store, c.kind, e.decimals, func(dst []byte) []byte {
		return c.appendStats(dst, p.values)
	})
}

// encodeText encodes strings, or their surrogates.
func (c *columnWriter) encodeText(p *rawPage) {
	width := 0 // of surrogates
	if c.isCoded() {
		width = surrogateLen
		for _, code := range c.codes {
			p.data = append(p.data, byte(code>>16), byte(code>>8), byte(code))
		}
	} else {
		p.data = c.text
	}
	if c.nested {
		c.setNested(p)
		return
	}
	p.sort, p.uncompressed = sortNative, len(p.data)
	if c.Type != String {
		p.encoders = []encoding{encVarchar}
	}
	if c.inverted {
		order := c.order()
		p.data, p.rowIDs = c.permute(order), appendRowIDs(nil, order)
		p.encoders, p.sort = []encoding{encInvertedIndex}, sortExplicit
	}
	if width > 0 {
		if data, runs, ok := findRuns(p.data, width); ok {
			p.data, p.runs = data, runs
			p.encoders = append(p.encoders, encRLE)
		}
	}
}

// order returns the rows of a page of strings in the order of their surrogates, or of the strings.
func (c *columnWriter) order() []uint16 {
	order := make([]uint16, c.rows)
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortStableFunc(order, func(a, b uint16) int {
		if c.isCoded() {
			return cmp.Compare(c.codes[a], c.codes[b])
		}
		return bytes.Compare(c.textAt(int(a)), c.textAt(int(b)))
	})
	return order
}

// permute returns the entries of the page in the given order.
func (c *columnWriter) permute(order []uint16) []byte {
	var b []byte
	for _, row := range order {
		if c.isCoded() {
			code := c.codes[row]
			b = append(b, byte(code>>16), byte(code>>8), byte(code))
			continue
		}
		v := c.textAt(int(row))
		b = append(appendLength(b, c.prefix, len(v)), v...)
	}
	return b
}

// mostRunPercent is how much of a page its runs may be, in percent, so that they are used.
const mostRunPercent = 70 // as the SDK

// findRuns returns an entry for each run of equal entries of the given width, and the runs, see
// runLen. It reports false if that saves too little.
func findRuns(data []byte, width int) (entries, runs []byte, ok bool) {
	n := len(data) / width
	start := 0
	for i := 1; i <= n; i++ {
		if i < n && bytes.Equal(data[i*width:(i+1)*width], data[start*width:(start+1)*width]) {
			continue
		}
		entries = append(entries, data[start*width:(start+1)*width]...)
		runs = binary.BigEndian.AppendUint16(runs, uint16(start))
		runs = binary.BigEndian.AppendUint16(runs, uint16(i-start))
		start = i
	}
	if 3*len(entries)/width*100/n > mostRunPercent {
		return nil, nil, false
	}
	return entries, runs, true
}

// appendRowIDs appends the row of each sorted entry, see rowIDLen.
func appendRowIDs(dst []byte, order []uint16) []byte {
	var list, positions []byte
	for i := 0; i < len(order); {
		first := i
		for i++; i < len(order) && order[i] == order[i-1]+1; i++ {
		}
		if i-first > 1 {
			positions = binary.BigEndian.AppendUint16(positions, uint16(len(list)/rowIDLen))
			list = binary.BigEndian.AppendUint16(list, order[first])
		}
		list = binary.BigEndian.AppendUint16(list, order[i-1])
	}
	if (len(list)+len(positions))/rowIDLen*100/len(order) > mostRunPercent {
		list, positions = list[:0], nil
		for _, row := range order {
			list = binary.BigEndian.AppendUint16(list, row)
		}
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(list)))
	return append(append(dst, list...), positions...)
}

// compress compresses a page and makes its header. Source: carbondata spec §4.1.
func (c *columnWriter) compress(p rawPage) (encodedPage, error) {
	body, err := c.compressor.Compress(p.data)
	if err != nil {
		return encodedPage{}, err
	}
	nulls, err := c.compressor.Compress(p.nulls)
	if err != nil {
		return encodedPage{}, err
	}
	h := pageHeader{compressor: c.compressor.Name, data: len(body), rowIDs: len(p.rowIDs), runs: len(p.runs),
		encoders: p.encoders, rows: p.rows}
	body = append(append(body, p.rowIDs...), p.runs...)
	low, high, present := c.appendBounds(p.values)

	var w thrift.Writer
	w.Begin(pageMeta)
	w.I32(metaCodec, codecDeprecated)
	w.I64(metaUncompressed, int64(p.uncompressed))
	w.I64(metaCompressed, int64(len(body)))
	w.Text(metaCompressor, h.compressor)
	w.End()
	w.Bool(pageRowMajor, false)
	w.I32(pageData, h.data)
	if h.rowIDs > 0 || p.adaptive {
		w.I32(pageRowIDs, h.rowIDs)
	}
	if h.runs > 0 {
		w.I32(pageRuns, h.runs)
	}
	w.Begin(pagePresence)
	w.Bool(presenceSet, false)
	w.Bytes(presenceBits, nulls)
	w.End()
	if p.sort != sortNone {
		w.I32(pageSort, p.sort)
	}
	writeEncodings(&w, pageEncoders, p.encoders)
	if p.meta != nil {
		w.Binaries(pageMetas, [][]byte{p.meta})
	} else {
		w.Binaries(pageMetas, nil)
	}
	w.Begin(pageBounds)
	w.Binaries(boundsMin, [][]byte{low})
	w.Binaries(boundsMax, [][]byte{high})
	w.Bools(boundsPresent, []bool{present})
	w.End()
	w.I32(pageRows, p.rows)
	w.Stop()
	e := encodedPage{head: w.Out, body: body, coded: c.isCoded()}
	if e.coded {
		e.header = h
	}
	return e, nil
}

// makePlain replaces the surrogates of a page of the blocklet by their values. Source: carbondata
// spec §7.5.
func (c *columnWriter) makePlain(p *encodedPage) error {
	h := &p.header
	data, err := codec.Decompress(nil, h.compressor, p.body[:h.data], h.rows*surrogateLen)
	if err == nil && h.runs > 0 {
		data, err = expandRuns(nil, data, surrogateLen, p.body[h.data+h.rowIDs:], h.rows)
	}
	var places []uint16
	if err == nil && h.rowIDs > 0 {
		places, err = inverse(nil, p.body[h.data:h.data+h.rowIDs], h.rows)
	}
	if err != nil {
		return err
	}
	w := *c
	w.dict, w.codes, w.text, w.ends, w.nulls, w.rows = nil, nil, nil, nil, nil, h.rows
	for row := range h.rows {
		if places != nil {
			row = int(places[row])
		}
		b := data[row*surrogateLen:]
		w.appendText(c.dict.value(uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])))
	}
	*p, err = w.compress(w.rawPage())
	return err
}

// chunkHeader returns the DataChunk3 of the blocklet.
func (c *columnWriter) chunkHeader() ([]byte, error) {
	var w thrift.Writer
	w.List(chunkPages, thrift.Struct, len(c.pages))
	at := 0
	var offsets, lengths []int
	for i := range c.pages {
		p := &c.pages[i]
		if p.coded && !c.hasDict {
			if err := c.makePlain(p); err != nil {
				return nil, err
			}
		}
		w.Out = append(w.Out, p.head...)
		offsets, lengths = append(offsets, at), append(lengths, len(p.body))
		at += len(p.body)
	}
	w.I32s(chunkPageOffsets, offsets)
	w.I32s(chunkPageLengths, lengths)
	if c.hasDict {
		if err := c.dict.chunk(&w, c); err != nil {
			return nil, err
		}
	}
	w.Stop()
	return w.Out, nil
}

// chunk writes the LocalDictionaryChunk of the blocklet as a field of the open message.
func (d *dictionaryWriter) chunk(w *thrift.Writer, c *columnWriter) error {
	data, err := c.compressor.Compress(d.data())
	if err != nil {
		return err
	}
	used, err := c.compressor.Compress(d.used)
	if err != nil {
		return err
	}
	kind := kindPlainValue
	if d.prefix == longLengthLen {
		kind = kindLongValue
	}
	w.Begin(chunkDictionary)
	w.Begin(dictionaryMeta)
	writeEncodings(w, dictionaryEncoders, []encoding{encDirectCompress})
	w.Binaries(dictionaryMetas, [][]byte{c.appendMeta(nil, inByteArray, inByteArray, byte(kind), 0, nil)})
	w.End()
	w.Bytes(dictionaryData, data)
	w.Bytes(dictionaryValues, used)
	w.End()
	return nil
}
