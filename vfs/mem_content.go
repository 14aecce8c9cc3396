package vfs

// pageSize is the unit in which the content of a file in memory is shared and freed.
const pageSize = 4096

// page is one unit of content. Once shared it never changes again: a writer copies it first. So a
// Sync or a copy of the whole file system costs a slice of pointers for each file.
type page struct {
	shared bool
	bytes  [pageSize]byte
}

// content is the bytes of a file. Pages that are nil or beyond the slice read as zeros, so a long
// file with nothing in it is free. The bytes of a page after size are zero.
type content struct {
	pages []*page
	size  int64
}

// share returns a copy of c that shares its pages.
func (c *content) share() content {
	for _, p := range c.pages {
		if p != nil && !p.shared { // another Mem may be reading shared once it is set
			p.shared = true
		}
	}
	return content{pages: append([]*page(nil), c.pages...), size: c.size}
}

// readAt fills b from off up to the end of the content.
func (c *content) readAt(b []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	b = b[:min(int64(len(b)), c.size-off)]
	for done := 0; done < len(b); {
		i, from := (off+int64(done))/pageSize, int((off+int64(done))%pageSize)
		n := min(len(b)-done, pageSize-from)
		if i < int64(len(c.pages)) && c.pages[i] != nil {
			copy(b[done:done+n], c.pages[i].bytes[from:])
		} else {
			clear(b[done : done+n])
		}
		done += n
	}
	return len(b)
}

// writable returns page i for writing.
func (c *content) writable(i int64) *page {
	if n := int(i) + 1; n > len(c.pages) {
		c.pages = append(c.pages, make([]*page, n-len(c.pages))...)
	}
	p := c.pages[i]
	if p == nil || p.shared {
		own := &page{}
		if p != nil {
			own.bytes = p.bytes
		}
		c.pages[i] = own
	}
	return c.pages[i]
}

func (c *content) writeAt(b []byte, off int64) {
	if len(b) == 0 {
		return
	}
	for done := 0; done < len(b); {
		i, from := (off+int64(done))/pageSize, int((off+int64(done))%pageSize)
		done += copy(c.writable(i).bytes[from:], b[done:])
	}
	c.size = max(c.size, off+int64(len(b)))
}

// zero clears [from, to) and frees the pages that are entirely in it.
func (c *content) zero(from, to int64) {
	to = min(to, int64(len(c.pages))*pageSize)
	for from < to {
		i, end := from/pageSize, min(to, (from/pageSize+1)*pageSize)
		switch {
		case c.pages[i] == nil:
		case end-from == pageSize:
			c.pages[i] = nil
		default:
			clear(c.writable(i).bytes[from%pageSize : from%pageSize+end-from])
		}
		from = end
	}
}

func (c *content) truncate(size int64) {
	if size < c.size {
		c.zero(size, c.size)
		c.pages = c.pages[:min(int64(len(c.pages)), (size+pageSize-1)/pageSize)]
	}
	c.size = size
}
