package vfs

// LoseUnsynced does to a file what a failed fsync may do: the bytes written since the last Sync do
// not reach the disk, now or by any later Sync, since their pages count as clean from now on. A
// page that is written again, even in part or with the same bytes, is an ordinary unsynced page.
// Until the next Sync, the durable length is the length at the last one.
//
// If cached is set, reads return what was written, as on Linux until the page leaves the cache; so
// do reads of copies made by Clone. Otherwise reads return what is on the disk.
func (f *memFile) LoseUnsynced(cached bool) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check(false); err != nil {
		return pathError("sync", f.name, err)
	}
	if cached {
		f.n.losePages()
	} else {
		f.n.data, f.n.lost = f.n.syncedData.share(), nil
	}
	return nil
}

// losePages records the pages that differ from those on the disk.
func (n *memNode) losePages() {
	now := n.data.share() // so that a page which is written again is another one
	n.lost = map[int]*page{}
	for i, p := range now.pages {
		if p != n.syncedData.page(i) {
			n.lost[i] = p
		}
	}
}

// sync writes all pages except those that count as clean though they never reached the disk.
func (n *memNode) sync() {
	now := n.data.share()
	for i, p := range n.lost {
		if p != now.page(i) || i >= len(now.pages) {
			delete(n.lost, i)
		} else {
			now.pages[i] = n.syncedData.page(i)
		}
	}
	size := now.size
	now.size = max(size, int64(len(now.pages))*pageSize)
	now.truncate(size) // an old page may have bytes after the new end
	n.syncedData = now
}

// page returns a page, nil if it is a hole or after the end.
func (c *content) page(i int) *page {
	if i < len(c.pages) {
		return c.pages[i]
	}
	return nil
}
