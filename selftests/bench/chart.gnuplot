# SPDX-License-Identifier: GPL-2.0-only
#
# Ratios as bars, from `figures`, lines of NAME, RATIO and BAR.
set terminal svg size 900,800 dynamic noenhanced background rgb 'white'
set datafile separator tab
set key off
set style fill solid 0.6
set grid x
set lmargin 30
set xrange [0:*]
set yrange [*:*] reverse
set xlabel 'cost, in that of the verbs below'
set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb 'black'
plot figures using (0.5 * $2):0:(0.5 * $2):(0.35):ytic(1) with boxxyerror lc rgb '#4878a8', \
	figures using ($3 > 0 ? $3 : NaN):0 with points pt 2 ps 0.8 lc rgb 'black'
