# SPDX-License-Identifier: GPL-2.0-only
#
# Curves of samples.tsv: grey while a round runs, black when all has come back.
set terminal svg size 900,1100 dynamic background rgb 'white'
set multiplot layout 5,1
set datafile separator tab
set key off
set grid
set lmargin 12
set yrange [0:*]
array names[5] = ['unreclaimable memory, KiB', 'vmalloc memory, KiB', 'pinned pages', \
	'RDMA objects', 'tasks']
array columns[5] = [4, 5, 9, 11, 12]
do for [i = 1:5] {
	set title names[i]
	if (i == 5) { set xlabel 'seconds' }
	plot samples using 1:(column(columns[i])) with lines lc rgb '#b0b0b0', \
		samples using ($3 == 0 ? $1 : NaN):(column(columns[i])) with linespoints \
			pt 7 ps 0.4 lc rgb 'black'
}
unset multiplot
