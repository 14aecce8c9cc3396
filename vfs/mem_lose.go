package vfs

// LoseUnsynced does to a file what a failed fsync may do: what was written since the last Sync does
// not reach the disk, now or by any later Sync, since its pages count as clean from here on. A page
// that is written again, in part or with the bytes that it has, is an ordinary unsynced page. The
// length is that of the last Sync until a later one, which makes it what it is then.
//
// If cached, reads show what was written, as on Linux until the page leaves the cache, in copies by
// Clone too. Else they show at once what is on the disk.
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

// losePages notes the pages that differ from those on the disk.
func (n *memNode) losePages() {
	now := n.data.share() // so that a page which is written again is another one
	n.lost = map[int]*page{}
	for i, p := range now.pages {
		if p != n.syncedData.page(i) {
			n.lost[i] = p
		}
	}
}

// sync is what a Sync writes: all pages but those that count as clean though they never reached the
// disk.
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
	now.truncate(size) // an old page may have bytes behind the new end
	n.syncedData = now
}

// page is a page, nil if it is a hole or behind the end.
func (c *content) page(i int) *page {
	if i < len(c.pages) {
		return c.pages[i]
	}
	return nil
}
