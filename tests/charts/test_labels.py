from ioportal.charts.labels import plotly_text


def test_a_name_on_a_chart_is_no_markup_and_hides_nothing():
    assert plotly_text("<b>a\u202eb\n</b>") == "&lt;b>a\\u202eb\\n&lt;/b>"
